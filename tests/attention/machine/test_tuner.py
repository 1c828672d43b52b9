"""The search for a tiling: never worse than the generator's choice, and done once."""

from dataclasses import replace
from pathlib import Path

from tests.attention.machine.pair import graph_of, kv_heads_of, plan_of, small_machine
from tilewright.attention.backends.machine import Tuner, TuneSpec, Uniform, tiling_of
from tilewright.attention.graph import DType
from tilewright.studies.decode.step import DecodeStep, simulate_step

SPEC = TuneSpec(
    machine=small_machine(),
    graph=graph_of("quest", DType.FLOAT16, page_size=16, width=64),
    context=2048,
    plan=plan_of(8),
)


def test_the_best_tiling_is_the_fastest_of_the_trials() -> None:
    found = Tuner().tune(SPEC)
    assert len(found.trials) > 5
    assert found.best.latency_ps == min(trial.latency_ps for trial in found.trials)
    assert found.best in found.trials


def test_the_tiling_takes_that_time_in_a_step() -> None:
    found = Tuner().tune(SPEC)
    step = DecodeStep(
        machine=SPEC.machine,
        graph=SPEC.graph,
        contexts=(SPEC.context,),
        kv_heads=1,
        plan=SPEC.plan,
        selection=Uniform(SPEC.seed),
        tiling=tiling_of(found.best),
    )
    assert kv_heads_of(SPEC.graph) == 2, "the search looks at one row of two"
    assert simulate_step(step, tells_stages=False).latency_ps == found.best.latency_ps


def test_what_was_found_is_not_searched_again(tmp_path: Path) -> None:
    first = Tuner(tmp_path)
    found = first.tune(SPEC)
    assert first.tune(SPEC) is found
    second = Tuner(tmp_path)
    assert second.tune(SPEC) == found
    assert first.num_simulated == len(found.trials)
    assert second.num_simulated == 0


def test_another_row_is_searched_anew(tmp_path: Path) -> None:
    tuner = Tuner(tmp_path)
    keys = {tuner.tune(SPEC).key, tuner.tune(replace(SPEC, context=1024)).key}
    assert len(keys) == 2
