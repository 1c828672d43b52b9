"""What requests keep from step to step on a machine is what they keep in the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.attention.machine.pair import (
    Pair,
    exact_requests,
    graph_of,
    kv_heads_of,
    plan_of,
    run_pair,
    small_machine,
)
from tilewright.attention.backends.machine import MachineStepResult, RowPlacement
from tilewright.attention.planner import Reserved, StateAdvance
from tilewright.studies.decode.data import RequestData, reference_step
from tilewright.studies.decode.step import DecodeStep, simulate_step

FLOWS = ("running_avg_block_sparse", "h2o")
CONTEXTS = (30, 15)  # neither completes a page in the first two steps but for one of them
PLAN = plan_of(4)


def of_length(
    requests: tuple[RequestData, ...], contexts: tuple[int, ...]
) -> tuple[RequestData, ...]:
    """The first tokens of requests that are longer."""
    return tuple(
        replace(
            data,
            keys=data.keys[:count],
            values=None if data.values is None else data.values[:count],
            queries=data.queries[:count],
        )
        for data, count in zip(requests, contexts, strict=True)
    )


def first_step(name: str) -> tuple[Pair, tuple[RequestData, ...]]:
    graph = graph_of(name)
    longer = exact_requests(graph, tuple(count + 1 for count in CONTEXTS))
    return run_pair(graph, CONTEXTS, PLAN, requests=of_length(longer, CONTEXTS)), longer


def second_step(
    name: str, longer: tuple[RequestData, ...], kept: Any, saved: Any
) -> MachineStepResult:
    """Another token for each request, with what the first step left in its saved pages."""
    graph, contexts = graph_of(name), tuple(count + 1 for count in CONTEXTS)
    values = reference_step(graph, longer, PLAN).values
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=contexts,
        kv_heads=kv_heads_of(graph),
        plan=PLAN,
        values=replace(values, kept=kept, saved_pages=saved),
    )
    return simulate_step(step, tells_stages=False).result


@pytest.mark.parametrize("name", FLOWS)
def test_a_step_leaves_the_state_of_the_reference(name: str) -> None:
    pair, _ = first_step(name)
    found, saved = pair.timing.result.kept, pair.timing.result.saved_pages
    assert saved.tolist() == [7, 7, 0, 0]  # all pages but the last; the second request fits
    assert set(pair.expected.kept) <= set(found)
    for state, of_requests in pair.expected.kept.items():
        ours = found[state][0][:, :7].astype(np.float32)
        np.testing.assert_allclose(ours, of_requests[0][:, :7].astype(np.float32), rtol=1e-5)
        assert np.abs(ours).max() > 0, "the flow keeps nothing"


def test_the_next_step_goes_on_from_what_the_last_one_left() -> None:
    name = "running_avg_block_sparse"
    pair, longer = first_step(name)
    saved = pair.timing.result.saved_pages
    ours = second_step(name, longer, pair.timing.result.kept, saved)
    reference = second_step(name, longer, pair.expected.kept, saved)
    assert [pages.tolist() for pages in ours.pages] == [pages.tolist() for pages in reference.pages]
    assert ours.output is not None
    assert reference.output is not None
    np.testing.assert_allclose(ours.output, reference.output, rtol=1e-5, atol=1e-6)
    forgotten = {state: [0 * item for item in items] for state, items in pair.expected.kept.items()}
    assert not np.allclose(
        second_step(name, longer, forgotten, saved).kept["running_score_state"][0][:, :7],
        ours.kept["running_score_state"][0][:, :7],
    )


def test_a_flow_without_state_keeps_nothing() -> None:
    pair = run_pair(graph_of("quest"), (14,), PLAN)
    assert pair.timing.result.kept == {}


@pytest.mark.parametrize("placement", RowPlacement)
@pytest.mark.parametrize("advance", StateAdvance)
def test_every_placement_advances_the_pages_that_the_reference_advances(
    placement: RowPlacement, advance: StateAdvance
) -> None:
    plan = replace(plan_of(6, Reserved(1, 2)), state_advance=advance)
    pair = run_pair(graph_of("running_avg_block_sparse"), (30, 15), plan, placement=placement)
    found, saved = pair.timing.result.kept["running_score_state"], pair.timing.result.saved_pages
    stops = [6, 6, 0, 0] if advance is StateAdvance.VORTEX else [7, 7, 3, 3]
    assert saved.tolist() == stops
    for row, stop in enumerate(stops):
        ours = found[row // 2][row % 2, :stop]
        wanted = pair.expected.kept["running_score_state"][row // 2][row % 2]
        np.testing.assert_allclose(ours, wanted[:stop], rtol=1e-5)
        assert not wanted[stop:].any()
    pair.check()


def test_a_step_in_which_a_row_fits_leaves_its_state_alone() -> None:
    name = "running_avg_block_sparse"
    pair, longer = first_step(name)
    first = pair.timing.result
    graph, contexts = graph_of(name), tuple(count + 1 for count in CONTEXTS)
    values = reference_step(graph, longer, plan_of(99)).values
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=contexts,
        kv_heads=kv_heads_of(graph),
        plan=plan_of(99),
        values=replace(values, kept=first.kept, saved_pages=first.saved_pages),
    )
    result = simulate_step(step, tells_stages=False).result
    assert result.saved_pages.tolist() == first.saved_pages.tolist() == [7, 7, 0, 0]
    was, now = (found["running_score_state"][0][:, :7] for found in (first.kept, result.kept))
    assert np.array_equal(now, was)
    assert [len(pages) for pages in result.pages] == [8, 8, 4, 4]
