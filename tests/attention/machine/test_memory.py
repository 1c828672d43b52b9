"""What a step leaves in memory: the new token in its page, and the summaries of complete pages."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attention.machine.pair import (
    exact_requests,
    graph_of,
    kv_heads_of,
    plan_of,
    small_machine,
)
from tilewright.attention.backends.machine import (
    DecodeMemory,
    PageOrder,
    RowPlacement,
    deploy_rows,
    kernels_for,
    layout_of,
    prepare_step,
    target_of,
)
from tilewright.attention.planner import RowFacts, plan_step
from tilewright.host import RuntimeContext
from tilewright.studies.decode.data import RequestData, reference_step
from tilewright.studies.decode.step import DecodeStep, simulate_step

CONTEXTS = (15, 24)  # pages of 4: the second request's last page becomes complete


def after_a_step(placement: RowPlacement) -> tuple[DecodeMemory, tuple[RequestData, ...]]:
    graph, machine = graph_of("quest"), small_machine()
    heads, requests = kv_heads_of(graph), exact_requests(graph, CONTEXTS)
    given = reference_step(graph, requests, plan_of(5))
    layout = layout_of(machine, graph, placement=placement, num_tokens=CONTEXTS, num_kv_heads=heads)
    torch = RuntimeContext(machine)
    memory = deploy_rows(
        torch,
        graph,
        layout,
        num_tokens=CONTEXTS,
        values=given.values,
        order=PageOrder.SHUFFLED,
    )
    facts = [RowFacts(-(-count // 4), count) for count in CONTEXTS for _ in range(heads)]
    kernels = kernels_for(graph, target_of(machine, layout))
    prepare_step(torch, memory, kernels, plan_step(plan_of(5), facts), scale=0.5).run(torch)
    return memory, requests


def page_in(memory: DecodeMemory, name: str, request: int, head: int) -> np.ndarray:
    """The last page of a row, as a pool has it."""
    pool = memory.arrays[f"{name}_pool"].read()
    blocks = pool.reshape(-1, *pool.shape[3:])
    found: np.ndarray = blocks[memory.blocks[request][-1] + head * memory.layout.head_blocks]
    return found


@pytest.mark.parametrize("placement", [RowPlacement.HEAD, RowPlacement.STRIPE])
def test_the_new_token_lies_behind_the_others_of_its_page(placement: RowPlacement) -> None:
    memory, requests = after_a_step(placement)
    for request, (data, first, count) in enumerate(zip(requests, (12, 20), CONTEXTS, strict=True)):
        for head in range(2):
            page = page_in(memory, "k", request, head)
            assert np.array_equal(page[: count - first], data.keys[first:count, head])


@pytest.mark.parametrize("placement", [RowPlacement.HEAD, RowPlacement.STRIPE])
def test_a_page_that_becomes_complete_gets_its_summaries(placement: RowPlacement) -> None:
    memory, requests = after_a_step(placement)
    for head in range(2):
        keys = requests[1].keys[20:24, head]
        assert np.array_equal(page_in(memory, "max", 1, head)[0], keys.max(axis=0))
        assert np.array_equal(page_in(memory, "min", 1, head)[0], keys.min(axis=0))


def test_a_page_that_is_not_complete_gets_none() -> None:
    memory, _ = after_a_step(RowPlacement.HEAD)
    assert not page_in(memory, "max", 0, 0).any()


def test_the_state_of_the_last_step_is_read() -> None:
    graph, contexts = graph_of("running_avg_block_sparse"), (64,)
    requests, plan = exact_requests(graph, contexts), plan_of(4)
    given = reference_step(graph, requests, plan)
    state = np.zeros_like(given.values.kept["running_score_state"][0])
    state[:, 9] = 1e6
    step = DecodeStep(
        machine=small_machine(),
        graph=graph,
        contexts=contexts,
        kv_heads=kv_heads_of(graph),
        plan=plan,
        values=replace(given.values, kept={"running_score_state": [state]}),
    )
    found = simulate_step(step, tells_stages=False).result.pages
    assert all(9 in pages for pages in found)
    assert not all(9 in pages for pages in given.pages), "the page is chosen anyway"
