"""Over how many PEs a row is cut where nobody says, and the idle times that this is decided by."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.attention.machine.pair import graph_of, kv_heads_of, plan_of, small_machine
from tilewright.attention.backends.machine import (
    PlacementCost,
    RowPlacement,
    Tuner,
    TuneSpec,
    Uniform,
    choose_placement,
    placement_costs,
    tiling_of,
)
from tilewright.attention.backends.machine.compiled import launch_ps, message_ps
from tilewright.attention.graph import DType, Graph
from tilewright.attention.planner import PlanSpec, RowFacts, parse_policy, plan_step
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.coords import PeCoord
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step

PLAN = PlanSpec(budget=parse_policy("16"))
CONTEXT = 16_384


@cache
def wide_quest() -> Graph:
    return graph_of("quest", DType.FLOAT16, page_size=16, width=128)


@cache
def small() -> Machine:
    return build_machine(parse_machine("ahbm-small"))


def costs_of(batch: int) -> tuple[PlacementCost, ...]:
    graph = wide_quest()
    pages = CONTEXT // graph.geometry.page_size
    plan = plan_step(PLAN, [RowFacts(pages, CONTEXT) for _ in range(batch)])
    tokens = (CONTEXT,) * batch
    return placement_costs(small(), graph, plan, num_tokens=tokens, num_kv_heads=1)


def run(placement: RowPlacement) -> StepTiming:
    step = DecodeStep(
        machine=small(),
        graph=wide_quest(),
        contexts=(CONTEXT,),
        kv_heads=1,
        plan=PLAN,
        placement=placement,
        selection=Uniform(1),
    )
    return simulate_step(step, tells_stages=False)


def test_one_row_is_cut_over_pes_that_would_be_idle_and_gains_by_it() -> None:
    taken = choose_placement(costs_of(1))
    assert taken.placement is not RowPlacement.HEAD
    assert taken.busy_pes > 1
    assert run(taken.placement).latency_ps < run(RowPlacement.HEAD).latency_ps


def test_rows_that_keep_every_pe_busy_stay_whole() -> None:
    num_pes = small().grid.num_pes
    assert choose_placement(costs_of(num_pes)).placement is RowPlacement.HEAD


def test_of_equal_times_fewer_pes_are_taken() -> None:
    costs = [
        PlacementCost(RowPlacement.SIP, 5, 16),
        PlacementCost(RowPlacement.STRIPE, 5, 8),
        PlacementCost(RowPlacement.CUBE, 5, 8),
    ]
    assert choose_placement(costs).placement is RowPlacement.STRIPE


def test_an_idle_launch_takes_what_the_spec_says() -> None:
    (*_, last) = run(RowPlacement.HEAD).result.launches
    found = last.report.latency_ps - last.report.execution_ps
    assert launch_ps(small(), PeCoord(0, 0, 0)) == pytest.approx(found, rel=0.1)


def test_a_message_takes_longer_the_farther_it_goes() -> None:
    near, far = PeCoord(0, 0, 1), PeCoord(0, small().grid.num_cubes_per_sip - 1, 1)
    home = PeCoord(0, 0, 0)
    assert message_ps(small(), near, home, 64) < message_ps(small(), far, home, 64)
    assert message_ps(small(), near, home, 64) < message_ps(small(), near, home, 1024)


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
