"""Kernels on a machine give what the reference gives: flows, placements, types, budgets."""

import numpy as np
import pytest

from tests.attention.machine.pair import graph_of, plan_of, run_pair
from tilewright.attention.backends.machine import RowPlacement
from tilewright.attention.codegen import Merge
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType
from tilewright.attention.planner import Reserved, ThresholdBudget, TopPBudget

CONTEXTS = (14, 2, 64)
"""A short row, one whose prompt is a single token, and one whose last page becomes complete."""
SIZES: dict[str, dict[str, int]] = {
    "double_sparsity": {"width": 16},
    "lserve": {"page_size": 16},
    "lserve_centroid_mla": {"page_size": 16},
    "lserve_centroid_sparse_attention": {"page_size": 16},
    "lserve_sparse_attention": {"page_size": 16},
    "masked_quest_sparse_attention": {"width": 16},
    "rocketkv": {"width": 32},
    "rope_unaware_lserve_centroid_mla": {"page_size": 16},
    "sparq": {"width": 32},
}
"""What a flow needs to have more than one part of a page, or as many channels as it takes."""
DIVIDED = ("quest", "quest_mla", "quest_mean_query", "streaming_llm")
FLOWS = tuple(registry.list_keys())


@pytest.mark.parametrize("name", FLOWS)
def test_a_ready_flow_selects_and_attends_as_the_reference_does(name: str) -> None:
    sizes = SIZES.get(name, {})
    longer = sizes.get("page_size", 4) // 4
    contexts = tuple(count * longer for count in CONTEXTS)
    run_pair(graph_of(name, **sizes), contexts, plan_of(5)).check()


@pytest.mark.parametrize(
    ("name", "placement"),
    [
        *((name, RowPlacement.CUBE) for name in DIVIDED),
        ("nsa", RowPlacement.CUBE),
        ("snapkv", RowPlacement.CUBE),
        ("quest", RowPlacement.STRIPE),
        ("quest_mla", RowPlacement.STRIPE),
        ("twilight", RowPlacement.STRIPE),
        ("quest", RowPlacement.SIP),
    ],
)
def test_rows_that_are_divided_give_the_same(name: str, placement: RowPlacement) -> None:
    run_pair(graph_of(name), CONTEXTS, plan_of(5), placement=placement).check()


@pytest.mark.parametrize("placement", [RowPlacement.STRIPE, RowPlacement.CUBE])
def test_parts_are_joined_through_memory_too(placement: RowPlacement) -> None:
    pair = run_pair(
        graph_of("quest"),
        CONTEXTS,
        plan_of(5),
        placement=placement,
        merges=frozenset({Merge.MEMORY}),
    )
    pair.check()
    assert pair.timing.kernels.merge is Merge.MEMORY


def test_more_rows_than_teams_of_pes_take_turns_on_the_queues() -> None:
    contexts = (14, 64, 30, 9, 50)
    pair = run_pair(graph_of("quest"), contexts, plan_of(5), placement=RowPlacement.CUBE)
    pair.check()
    assert pair.timing.kernels.merge is Merge.IPCQ
    assert pair.timing.layout.num_pieces > len(pair.timing.layout.pes)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("name", ["quest", "quest_mla"])
def test_narrow_types_keep_their_tolerance(name: str, dtype: DType) -> None:
    run_pair(graph_of(name, dtype), CONTEXTS, plan_of(5)).check(dtype)


def test_sizes_that_are_no_powers_of_two_change_nothing() -> None:
    graph = graph_of("quest", page_size=3, query_heads=3, width=10)
    run_pair(graph, (13, 40), plan_of(5)).check()


@pytest.mark.parametrize("placement", [RowPlacement.HEAD, RowPlacement.STRIPE])
@pytest.mark.parametrize("name", ["quest", "quest_mla"])
def test_a_budget_for_every_page_is_dense_bit_by_bit(name: str, placement: RowPlacement) -> None:
    graph = graph_of(name, DType.FLOAT16)
    sparse = run_pair(graph, CONTEXTS, plan_of(99), placement=placement)
    dense = run_pair(graph, CONTEXTS, plan_of(99), placement=placement, is_dense=True)
    sparse.check(DType.FLOAT16)
    assert np.array_equal(sparse.output, dense.output)


def test_reserved_pages_beyond_the_row_are_all_of_it() -> None:
    pair = run_pair(graph_of("quest"), (9, 45), plan_of(6, Reserved(3, 2)))
    pair.check()
    assert pair.timing.result.pages[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("budget", [ThresholdBudget(9.0, at_most=9), TopPBudget(0.6)])
def test_budgets_by_scores_and_by_mass_take_what_the_reference_takes(
    budget: ThresholdBudget | TopPBudget,
) -> None:
    pair = run_pair(graph_of("quest"), (60, 33), plan_of(budget))
    pair.check()
    assert len({len(pages) for pages in pair.timing.result.pages}) > 1, "all take equally many"


def test_a_row_does_not_depend_on_the_others_of_its_batch() -> None:
    graph = graph_of("quest", DType.FLOAT16)
    together = run_pair(graph, CONTEXTS, plan_of(5))
    alone = run_pair(graph, CONTEXTS[:1], plan_of(5))
    assert np.array_equal(alone.output, together.output[: len(alone.output)])
