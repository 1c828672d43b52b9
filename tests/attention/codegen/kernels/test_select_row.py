"""Selections in two levels: exact, in the order of the reference, where they cost least."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.backends.reference.sample import PerHead
from tests.attention.codegen.on_machine import draw_row, run_row, small_machine
from tests.attention.triton.pair import Both, Floats, Pair, Rows, geometry_of, graph_of, run_pair
from tests.attention.triton.test_flows import check
from tests.attention.triton.test_selection import Bounded, OwnNumber
from tilewright.attention.codegen import (
    Cut,
    Deal,
    Decision,
    Fusion,
    Merge,
    Selection,
    Stage,
    Target,
    Tiling,
    compile_graph,
)
from tilewright.attention.flow import FlowBase, registry
from tilewright.attention.graph import DType, FlowKind
from tilewright.attention.planner import DefaultBudget, ThresholdBudget

MOST = 4
TILES = Tiling(page_tile=8, row_tile=8, attend_tokens=16, part_pages=64)
TARGET = Target(rows=2, pages=32)
ROWS = Rows(tokens=(6, 51), budget=DefaultBudget(topk=MOST), kv_heads=1)
WHOLE = Cut(fusions=frozenset(Fusion), selection=Selection.SEGMENTS)
APART = Cut(fusions=frozenset({Fusion.SELECT_LIST}), selection=Selection.SEGMENTS)
SIZES = geometry_of(FlowKind.GQA, DType.FLOAT32, width=16)
QUEUES = frozenset({Merge.MEMORY, Merge.IPCQ})


def run_rows(rows: Rows, target: Target | None, cut: Cut | None, most: int = MOST) -> Pair:
    graph = graph_of(registry.get("quest")(), SIZES, "quest")
    return run_pair(graph, rows, TILES, target, cut, most)


FORMS = pytest.mark.parametrize(
    ("target", "cut"),
    [(TARGET, WHOLE), (TARGET, APART), (TARGET, replace(WHOLE, fusions=frozenset())), (None, None)],
    ids=["fused", "scored apart", "a kernel of its own", "GPU"],
)


@FORMS
def test_two_levels_select_what_the_reference_does(target: Target | None, cut: Cut | None) -> None:
    check(run_rows(ROWS, target, cut))


@FORMS
def test_of_equal_scores_the_lower_pages_are_taken(target: Target | None, cut: Cut | None) -> None:
    class Tied(Rows):
        def drawn(self, generator: np.random.Generator, *shape: int) -> Floats:
            del generator
            return np.ones(shape, dtype=np.float32)

    pair = run_rows(Tied(tokens=(60,), budget=DefaultBudget(topk=3), kv_heads=1), target, cut)
    assert pair.pages == [[0, 1, 2, 3, 14]]


@FORMS
def test_a_threshold_is_counted_among_those_that_are_kept(
    target: Target | None, cut: Cut | None
) -> None:
    rows = Rows(tokens=(60,), budget=ThresholdBudget(13.0, at_most=9), kv_heads=2)
    graph = graph_of(
        registry.get("quest")(), geometry_of(FlowKind.GQA, DType.FLOAT32, width=8), "quest"
    )
    pair = run_pair(graph, rows, TILES, target, cut, 7)
    assert len({len(pages) for pages in pair.pages}) == 2, "the data takes equally many"
    check(pair)


@FORMS
def test_a_budget_for_every_page_takes_more_than_is_kept(
    target: Target | None, cut: Cut | None
) -> None:
    rows = Rows(tokens=(30,), budget=DefaultBudget(topk=99), kv_heads=1)
    assert run_rows(rows, target, cut, most=1).pages == [list(range(8))]


@pytest.mark.parametrize("flow", [OwnNumber, Bounded, PerHead])
def test_ops_with_numbers_of_their_own_bound_what_is_kept(flow: type[FlowBase]) -> None:
    graph = graph_of(flow(), geometry_of(FlowKind.GQA, DType.FLOAT32))
    rows = replace(ROWS, tokens=(7, 58), budget=DefaultBudget(topk=3))
    file = compile_graph(graph, TILES, most=3)
    assert "best_in(" in file.text
    assert "last_key_in" not in file.text
    pair = run_pair(graph, rows, TILES, most=3)
    assert pair.pages == pair.expected_pages


@pytest.mark.parametrize("ties", [False, True], ids=["all differ", "many ties"])
@pytest.mark.parametrize("deal", [Deal.DEALT, Deal.CONTIGUOUS])
@pytest.mark.parametrize("members", [3, 4])
def test_members_send_their_best_and_choose_as_one_program_does(
    members: int, deal: Deal, ties: bool
) -> None:
    tokens, sizes = 131, geometry_of(FlowKind.GQA, DType.FLOAT16, width=16)
    pages = -(-tokens // sizes.page_size)
    graph = graph_of(registry.get("quest")(), sizes, "quest")
    values = draw_row(sizes, tokens, seed=1, ties=ties)
    target = Target(rows=1, pages=pages)
    alone = compile_graph(graph, TILES, target)
    share = replace(target, pages=-(-pages // members), members=members, deal=deal, merges=QUEUES)
    file = compile_graph(graph, TILES, share, WHOLE, most=MOST)
    assert file.cut.selection is Selection.SEGMENTS
    rows = [run_row(small_machine(), each, values, tokens, MOST) for each in (alone, file)]
    assert rows[0].pages == rows[1].pages
    np.testing.assert_allclose(rows[0].output, rows[1].output, atol=2e-3)


def test_a_plan_that_chooses_more_than_is_kept_is_refused() -> None:
    graph = graph_of(registry.get("quest")(), SIZES, "quest")
    rows = replace(ROWS, budget=DefaultBudget(topk=MOST + 1))
    both = Both(graph, rows, compile_graph(graph, TILES, most=MOST))
    with pytest.raises(
        Exception, match=r"row 1: found a budget of 5 candidates, expected at most 4"
    ):
        both.attend(both.begin())


def decisions_of(target: Target | None, most: int | None) -> dict[Selection, Decision]:
    graph = graph_of(registry.get("quest")(), SIZES, "quest")
    found = compile_graph(graph, None, target, most=most).decisions
    return {item.choice: item for item in found if isinstance(item.choice, Selection)}


def taken(found: dict[Selection, Decision]) -> list[Selection]:
    return [choice for choice, item in found.items() if item.is_accepted]


def test_a_row_that_fits_is_selected_on_the_chip() -> None:
    assert taken(decisions_of(Target(rows=8, pages=8192), 64)) == [Selection.BLOCK]


def test_a_row_that_would_spill_is_selected_in_two_levels() -> None:
    found = decisions_of(Target(rows=8, pages=65_536), 64)
    assert taken(found) == [Selection.SEGMENTS]
    assert "786432 bytes of scores stay on the chip" in found[Selection.BLOCK].reason
    assert "more than selection in two levels" in found[Selection.BLOCK].reason
    assert found[Selection.SEGMENTS].num_bytes == 9 * 65_536


def test_members_that_have_queues_send_the_few_that_are_kept() -> None:
    target = Target(rows=8, pages=4096, members=8, deal=Deal.DEALT, merges=QUEUES)
    assert taken(decisions_of(target, 64)) == [Selection.SEGMENTS]


@pytest.mark.parametrize("target", [None, Target(rows=8, pages=65_536, on_chip_bytes=4096)])
def test_digits_are_left_where_nothing_bounds_a_choice(target: Target | None) -> None:
    assert taken(decisions_of(target, None)) == [Selection.DIGITS]


@pytest.mark.parametrize("cut", [WHOLE, APART, replace(WHOLE, fusions=frozenset())])
def test_predicted_bytes_of_two_levels_are_those_that_a_row_moves(cut: Cut) -> None:
    sizes = geometry_of(FlowKind.GQA, DType.FLOAT16, width=16)
    tokens, budget = 4 * 512, 40
    graph = graph_of(registry.get("quest")(), sizes, "quest")
    file = compile_graph(graph, None, Target(rows=8, pages=512), cut, most=budget)
    row = run_row(small_machine(), file, draw_row(sizes, tokens, 1, ties=False), tokens, budget)
    predicted = file.predicted_bytes(pages=512, listed=len(row.pages))
    assert sum(predicted.values()) == pytest.approx(row.num_bytes, rel=0.15)
    assert set(predicted) == {Stage.SCORING, Stage.SELECTION, Stage.ATTENTION}
