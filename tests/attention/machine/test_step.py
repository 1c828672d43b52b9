"""A step with values, without them and under a sanitizer: one time, one count of bytes."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attention.machine.pair import (
    exact_requests,
    graph_of,
    kv_heads_of,
    plan_of,
    run_pair,
    small_machine,
)
from tilewright.attention.backends.machine import (
    PageOrder,
    Recent,
    Recorded,
    RowPlacement,
    Uniform,
)
from tilewright.attention.codegen import Cut
from tilewright.attention.graph import DType
from tilewright.errors import AttentionError
from tilewright.host import DPPolicy, RuntimeContext
from tilewright.studies.decode.data import reference_step
from tilewright.studies.decode.step import DecodeStep, StepTiming, simulate_step

CONTEXTS = (14, 64)
FORMS = {"fused": None, "apart": Cut()}


def step_of(**options: object) -> DecodeStep:
    graph = graph_of("quest", DType.FLOAT16)
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=CONTEXTS,
        kv_heads=kv_heads_of(graph),
        plan=plan_of(5),
    )
    return replace(step, **options)  # type: ignore[arg-type]


def times_of(timing: StepTiming) -> list[tuple[str, int, int]]:
    return [(stage.name, stage.latency_ps, stage.bytes) for stage in timing.stages]


@pytest.mark.parametrize("placement", [RowPlacement.HEAD, RowPlacement.CUBE])
@pytest.mark.parametrize("form", FORMS)
def test_recorded_pages_take_the_time_and_bytes_of_the_run_that_read_them(
    form: str, placement: RowPlacement
) -> None:
    graph = graph_of("quest", DType.FLOAT16)
    options = {"placement": placement, "cut": FORMS[form]}
    given = reference_step(graph, exact_requests(graph, CONTEXTS), plan_of(5))
    with_values = simulate_step(step_of(values=given.values, **options))
    pages = tuple(tuple(found.tolist()) for found in with_values.result.pages)
    without = simulate_step(step_of(selection=Recorded(pages), **options))
    assert without.result.output is None
    assert [found.tolist() for found in without.result.pages] == [list(row) for row in pages]
    assert without.latency_ps == with_values.latency_ps
    assert times_of(without) == times_of(with_values)


@pytest.mark.parametrize("form", FORMS)
def test_stages_add_up_to_the_step(form: str) -> None:
    timing = simulate_step(step_of(selection=Uniform(1), cut=FORMS[form]))
    assert sum(stage.latency_ps for stage in timing.stages) == timing.latency_ps
    assert sum(stage.bytes for stage in timing.stages) == timing.num_bytes
    names = [stage.name for stage in timing.stages]
    assert names == ["page completion", "scoring", "selection", "attention", "launch"]
    assert timing.latency_ps >= timing.bound.total_ps


def test_stages_that_share_a_kernel_have_the_bytes_of_those_that_do_not() -> None:
    fused, apart = (
        {stage.name: stage.bytes for stage in simulate_step(step).stages}
        for step in (step_of(selection=Uniform(1)), step_of(selection=Uniform(1), cut=Cut()))
    )
    for name in ("scoring", "attention"):
        assert abs(fused[name] - apart[name]) < 0.2 * apart[name]
    assert fused["selection"] < apart["selection"]


@pytest.mark.parametrize("placement", list(RowPlacement))
def test_a_step_is_clean_under_the_sanitizer(placement: RowPlacement) -> None:
    pair = run_pair(
        graph_of("quest", DType.FLOAT16), (9, 16), plan_of(3), placement=placement, sanitize=True
    )
    assert pair.timing.findings is not None
    assert not len(pair.timing.findings), pair.timing.findings.text


def test_the_sanitizer_and_the_order_of_pages_change_no_value() -> None:
    graph = graph_of("quest", DType.FLOAT16)
    given = reference_step(graph, exact_requests(graph, CONTEXTS), plan_of(5))
    one, other = (
        simulate_step(step_of(values=given.values, order=order, sanitize=watched)).result.output
        for order, watched in ((PageOrder.WRITTEN, False), (PageOrder.SHUFFLED, True))
    )
    assert one is not None
    assert other is not None
    assert np.array_equal(one, other)


def test_recent_pages_are_the_ones_that_are_read() -> None:
    timing = simulate_step(step_of(selection=Recent()), tells_stages=False)
    assert [found.tolist() for found in timing.result.pages[2:]] == 2 * [[0, 12, 13, 14, 15]]


def test_without_stages_the_latency_is_the_same() -> None:
    step = step_of(selection=Uniform(3))
    told, untold = simulate_step(step), simulate_step(step, tells_stages=False)
    assert told.latency_ps == untold.latency_ps
    assert untold.stages == ()


def test_a_step_with_nothing_to_select_by_is_refused() -> None:
    with pytest.raises(AttentionError, match="found neither values nor a selection"):
        simulate_step(step_of())


def test_a_step_with_values_and_a_model_is_refused() -> None:
    graph = graph_of("quest", DType.FLOAT16)
    given = reference_step(graph, exact_requests(graph, CONTEXTS), plan_of(5))
    with pytest.raises(AttentionError, match="found values and the selection 'recent'"):
        simulate_step(step_of(values=given.values, selection=Recent()))


def test_a_store_of_integers_that_nobody_knows_changes_no_bytes() -> None:
    """The rule that selections without scores stand on: marks stay, the time passes."""

    def mark_positive(scores, marks, tl):  # type: ignore[no-untyped-def]
        place = tl.arange(0, 16)
        tl.store(marks + place, (tl.load(scores + place) > 0).to(tl.int8))

    with RuntimeContext(small_machine(), data=False) as torch:
        one_pe = DPPolicy(num_sips=1, num_cubes=1, num_pes=1)
        scores = torch.empty(16, "f32", dp=one_pe)
        marks = torch.empty(16, "int8", dp=one_pe)
        marks.copy_(np.arange(16, dtype=np.int8), timed=False)
        report = torch.launch(mark_positive, scores, marks, grid=(1,)).report
        assert marks.numpy(timed=False).tolist() == list(range(16))
        assert report.counters.stored_bytes == 16
