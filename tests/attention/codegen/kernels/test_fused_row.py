"""Kernels for whole rows give what the reference gives, fused or not."""

import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.triton.pair import Floats, Pair, Rows, geometry_of, graph_of, run_pair
from tests.attention.triton.test_flows import TOLERANCE, check
from tilewright.attention.codegen import Cut, Fusion, Target, Tiling
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType
from tilewright.attention.planner import DefaultBudget, Reserved, ThresholdBudget

TILES = Tiling(page_tile=4, row_tile=8, attend_tokens=16, part_pages=64)
TARGET = Target(rows=2, pages=32)
ROWS = Rows(tokens=(6, 51), budget=DefaultBudget(topk=4), kv_heads=1)
ALL = frozenset(Fusion)


def run_rows(
    name: str,
    rows: Rows = ROWS,
    *,
    cut: Cut | None = None,
    dtype: DType = DType.FLOAT32,
    width: int = 16,
) -> Pair:
    flow = registry.get(name)()
    sizes = geometry_of(flow.kind, dtype, width=width)
    return run_pair(graph_of(flow, sizes, name), rows, TILES, TARGET, cut)


@pytest.mark.parametrize("name", ["quest", "streaming_llm", "block_sparse_attention", "moba"])
def test_a_row_in_one_kernel_selects_and_attends_as_the_reference_does(name: str) -> None:
    check(run_rows(name))


@pytest.mark.parametrize(
    "fusions",
    [
        frozenset(),
        {Fusion.SCORE_SELECT},
        {Fusion.LIST_ATTEND},
        {Fusion.SCORE_SELECT, Fusion.SELECT_LIST},
        {Fusion.SCORE_SELECT, Fusion.LIST_ATTEND},
    ],
    ids=lambda item: "+".join(sorted(part.name for part in item)) or "none",
)
def test_values_do_not_depend_on_which_stages_share_a_kernel(fusions: set[Fusion]) -> None:
    check(run_rows("quest", cut=Cut(fusions=frozenset(fusions))))


@pytest.mark.parametrize(
    "cut",
    [
        Cut(fusions=ALL, has_dots=False),
        Cut(fusions=ALL, hoists=False),
        Cut(fusions=ALL, reads_ahead=False),
    ],
    ids=["no dots", "no hoisting", "no reading ahead"],
)
def test_values_do_not_depend_on_a_switch_of_the_cut(cut: Cut) -> None:
    check(run_rows("quest", cut=cut))


def test_products_in_half_precision_keep_its_tolerance() -> None:
    check(run_rows("quest", dtype=DType.FLOAT16), TOLERANCE[DType.FLOAT16])


def test_a_choice_by_score_counts_what_reaches_the_threshold() -> None:
    rows = Rows(tokens=(60,), budget=ThresholdBudget(13.0, at_most=9), kv_heads=2)
    pair = run_rows("quest", rows, width=8)
    assert len({len(pages) for pages in pair.pages}) == 2, "the data takes equally many"
    check(pair)


def test_equal_scores_take_the_lower_pages() -> None:
    class Tied(Rows):
        def drawn(self, generator: np.random.Generator, *shape: int) -> Floats:
            del generator
            return np.ones(shape, dtype=np.float32)

    pair = run_rows("quest", Tied(tokens=(60,), budget=DefaultBudget(topk=3), kv_heads=1))
    assert pair.pages == [[0, 1, 2, 3, 14]]


def test_a_budget_for_every_page_reads_every_page() -> None:
    pair = run_rows("quest", Rows(tokens=(30,), budget=DefaultBudget(topk=99), kv_heads=1))
    assert pair.pages == [list(range(8))]
    check(pair)


def test_more_reserved_pages_than_a_row_has_are_all_of_it() -> None:
    rows = Rows(tokens=(9, 45), budget=DefaultBudget(topk=2), reserved=Reserved(3, 2), kv_heads=1)
    pair = run_rows("quest", rows)
    assert pair.pages[0] == [0, 1, 2]
    check(pair)


@pytest.mark.parametrize("name", ["block_sparse_attention", "quest_mla"])
def test_a_mean_query_in_parts_of_half_precision_scores_as_a_whole_one(name: str) -> None:
    """Of data whose sums are rounded; test_narrow_dot holds the parts themselves."""
    rows = Rows(tokens=(120,), budget=DefaultBudget(topk=8), kv_heads=1, exact=False, seed=3)
    pair = run_rows(name, rows, dtype=DType.FLOAT16)
    check(pair, TOLERANCE[DType.FLOAT16])
