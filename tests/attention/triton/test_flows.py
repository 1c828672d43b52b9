"""Generated kernels give what the reference gives, flow by flow."""

from collections.abc import Mapping
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.interpreter import InterpreterFailure, ask
from tests.attention.triton.pair import (
    LARGE,
    SMALL,
    Both,
    Floats,
    Pair,
    Rows,
    geometry_of,
    graph_of,
    run_pair,
)
from tilewright.attention.backends.triton import StepSizes
from tilewright.attention.codegen import Tiling, compile_graph
from tilewright.attention.flow import FlowBase, registry
from tilewright.attention.graph import DType, FlowKind
from tilewright.attention.planner import (
    DefaultBudget,
    Reserved,
    ThresholdBudget,
    TopPBudget,
)

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
"""What a flow needs to have more than one part of a page, or more channels than it skips."""
CUT_SMALL = ("lserve", "nsa", "quest", "quest_mla", "sparq", "twilight")
"""Flows of every make, in tiles and parts that are smaller than short rows."""
TOLERANCE = {DType.FLOAT32: 1e-5, DType.FLOAT16: 2e-3}
ROWS = Rows(tokens=(6, 51), budget=DefaultBudget(topk=4), kv_heads=1)


def made(name: str) -> FlowBase:
    return registry.get(name)()


def run_flow(
    name: str,
    rows: Rows,
    *,
    dtype: DType = DType.FLOAT32,
    sizes: Mapping[str, int] | None = None,
    tiling: Tiling = SMALL,
) -> Pair:
    flow = made(name)
    graph = graph_of(flow, geometry_of(flow.kind, dtype, **(sizes or {})), name)
    return run_pair(graph, rows, tiling)


def rows_for(name: str) -> Rows:
    longer = SIZES.get(name, {}).get("page_size", 4) // 4
    return replace(ROWS, tokens=tuple(count * longer for count in ROWS.tokens))


def check(pair: Pair, tolerance: float = 1e-5) -> None:
    assert pair.pages == pair.expected_pages
    assert pair.worst_error() < tolerance
    if pair.expected_lse is not None:
        assert pair.log_sum_exp is not None
        assert np.max(np.abs(pair.log_sum_exp - pair.expected_lse)) < 10 * tolerance


@pytest.mark.parametrize("name", registry.list_keys())
def test_a_ready_flow_selects_and_attends_as_the_reference_does(name: str) -> None:
    tiling = SMALL if name in CUT_SMALL else LARGE
    pair = run_flow(name, rows_for(name), sizes=SIZES.get(name), tiling=tiling)
    check(pair)
    for field, (expected, found) in pair.fields.items():
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=field)


@pytest.mark.parametrize("name", registry.list_keys())
def test_half_precision_keeps_its_tolerance(name: str) -> None:
    rows, sizes = rows_for(name), SIZES.get(name)
    rows = replace(rows, tokens=rows.tokens[-1:])
    pair = run_flow(name, rows, dtype=DType.FLOAT16, sizes=sizes, tiling=LARGE)
    check(pair, TOLERANCE[DType.FLOAT16])


def test_sizes_that_are_no_powers_of_two_change_nothing() -> None:
    rows = Rows(tokens=(13, 40), budget=DefaultBudget(topk=3), kv_heads=2)
    check(run_flow("quest", rows, sizes={"page_size": 3, "query_heads": 3, "width": 10}))


@pytest.mark.parametrize("name", ["quest_mean_query", "duo_attention", "quest"])
def test_kv_heads_of_a_request_are_rows_of_their_own(name: str) -> None:
    rows = Rows(tokens=(22, 45), budget=DefaultBudget(topk=3), kv_heads=2)
    check(run_flow(name, rows))


def test_a_row_may_have_more_than_65536_pages() -> None:
    flow = made("streaming_llm")
    graph = graph_of(flow, geometry_of(flow.kind, DType.FLOAT32, page_size=1))
    rows = Rows(tokens=(70_000,), budget=DefaultBudget(topk=3), kv_heads=1)
    tiling = Tiling(page_tile=65_536, max_elements=65_536, row_tile=65_536, part_pages=70_000)
    pair = run_pair(graph, rows, tiling)
    assert pair.pages == [[0, 69_996, 69_997, 69_998, 69_999]]
    check(pair)


def test_a_request_without_tokens_reads_nothing_and_disturbs_nobody() -> None:
    graph = graph_of(made("quest"), geometry_of(FlowKind.GQA, DType.FLOAT32))
    both = Both(graph, replace(ROWS, tokens=(6, 51)), compile_graph(graph, SMALL))
    both.begin()
    sizes, arguments = both.launch(both.draw_queries())
    together = ask("step", both.file, sizes, arguments)
    emptied = {**arguments, "num_tokens_ptr": np.array([0, 51], dtype=np.int32)}
    alone = ask("step", both.file, sizes, emptied)
    assert alone["pages"] == [[], together["pages"][1]]
    assert not alone["output"][0].any()
    assert np.array_equal(alone["output"][1], together["output"][1])


def test_a_plan_by_scores_takes_what_reaches_the_threshold() -> None:
    rows = Rows(tokens=(60,), budget=ThresholdBudget(13.0, at_most=9), kv_heads=2)
    pair = run_flow("quest", rows)
    assert len({len(pages) for pages in pair.pages}) == 2, "the data takes equally many"
    check(pair)


def test_bfloat16_is_refused_where_it_cannot_be_computed() -> None:
    file = compile_graph(graph_of(made("quest"), geometry_of(FlowKind.GQA, DType.BFLOAT16)))
    sizes = StepSizes(num_requests=1, num_kv_heads=1, max_pages=1, num_blocks=1)
    query = np.zeros((1, 1, 2, 8), dtype=ml_dtypes.bfloat16)
    with pytest.raises(InterpreterFailure, match=r"q_in: found bfloat16 under TRITON_INTERPRET=1"):
        ask("step", file, sizes, {"q_in": query})


def test_a_plan_by_mass_takes_the_fewest_pages_that_hold_the_share() -> None:
    rows = Rows(tokens=(60, 9), budget=TopPBudget(0.9, at_most=9), kv_heads=2)
    pair = run_flow("quest", rows)
    assert len({len(pages) for pages in pair.pages}) > 2, "the data takes equally many"
    check(pair)


def test_a_plan_by_mass_is_refused_by_kernels_that_know_none() -> None:
    graph = graph_of(made("quest"), geometry_of(FlowKind.GQA, DType.FLOAT32))
    sizes = StepSizes(num_requests=1, num_kv_heads=1, max_pages=1, num_blocks=1)
    with pytest.raises(InterpreterFailure, match="found a plan by mass"):
        ask("step", compile_graph(graph), sizes, {"by_mass": np.ones(1, dtype=np.int8)})


def test_among_equal_scores_the_lower_page_wins() -> None:
    """Keys of one value alone tie every page with every other."""

    class Tied(Rows):
        def drawn(self, generator: np.random.Generator, *shape: int) -> Floats:
            del generator
            return np.ones(shape, dtype=np.float32)

    pair = run_flow("quest", Tied(tokens=(60,), budget=DefaultBudget(topk=3), kv_heads=1))
    assert pair.pages == [[0, 1, 2, 3, 14]]
    assert pair.expected_pages == pair.pages


def test_a_budget_for_every_page_reads_every_page() -> None:
    pair = run_flow("quest", Rows(tokens=(30,), budget=DefaultBudget(topk=99), kv_heads=1))
    assert pair.pages == [list(range(8))]
    check(pair)


def test_a_row_below_the_shortest_sparse_context_is_dense() -> None:
    rows = Rows(tokens=(30, 60), budget=DefaultBudget(topk=1), kv_heads=1, min_context=40)
    pair = run_flow("quest", rows)
    assert [len(pages) for pages in pair.pages] == [8, 3]
    check(pair)


def test_more_reserved_pages_than_a_row_has_are_all_of_it() -> None:
    rows = Rows(tokens=(9, 45), budget=DefaultBudget(topk=2), reserved=Reserved(3, 2), kv_heads=1)
    pair = run_flow("quest", rows)
    assert pair.pages[0] == [0, 1, 2]
    check(pair)
