"""Which stages share a kernel, why, and what memory is told to move."""

from dataclasses import replace

import pytest

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.codegen.on_machine import draw_row, run_row, small_machine
from tests.attention.triton.pair import geometry_of, graph_of
from tilewright.attention.codegen import (
    Cut,
    Deal,
    Decision,
    Fusion,
    Stage,
    Target,
    compile_dense,
    compile_graph,
)
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType, FlowKind
from tilewright.errors import CodegenError

SIZES = geometry_of(FlowKind.GQA, DType.FLOAT16, width=16)
TARGET = Target(rows=8, pages=512)


def decisions_of(
    name: str, target: Target | None, cut: Cut | None = None
) -> dict[Fusion, Decision]:
    graph = graph_of(registry.get(name)(), SIZES, name)
    decisions = compile_graph(graph, None, target, cut).decisions
    return {item.choice: item for item in decisions if isinstance(item.choice, Fusion)}


def test_a_row_that_fits_is_one_kernel() -> None:
    file = compile_graph(graph_of(registry.get("quest")(), SIZES, "quest"), None, TARGET)
    assert [kernel.name for kernel in file.step] == ["decode_row"]
    assert file.cut.fusions == frozenset(Fusion)
    assert file.step[0].stages == (Stage.SCORING, Stage.SELECTION, Stage.ATTENTION)


def test_without_a_target_nothing_is_fused_and_that_has_a_reason() -> None:
    found = decisions_of("quest", None)
    assert not any(item.is_accepted for item in found.values())
    assert all("none a whole row" in item.reason for item in found.values())


@pytest.mark.parametrize(
    ("name", "target", "reason"),
    [
        ("moba", TARGET, "for all query heads together"),
        ("quest", replace(TARGET, members=4, deal=Deal.DEALT), "have no queues"),
        ("quest", replace(TARGET, on_chip_bytes=4096), "digits are looked for in memory"),
        (
            "quest",
            replace(TARGET, register_bytes=1, spill_bytes_per_us=1),
            "digits are looked for in memory",
        ),
        ("h2o", TARGET, "kept for the next step"),
    ],
)
def test_a_selection_that_cannot_stay_on_the_chip_says_why(
    name: str, target: Target, reason: str
) -> None:
    for fusion in (Fusion.SCORE_SELECT, Fusion.SELECT_LIST):
        decision = decisions_of(name, target)[fusion]
        assert not decision.is_accepted
        assert reason in decision.reason


def test_scores_from_memory_are_still_chosen_on_the_chip() -> None:
    found = decisions_of("quest_mean_query", TARGET)
    assert "through memory" in found[Fusion.SCORE_SELECT].reason
    assert found[Fusion.SELECT_LIST].is_accepted


def test_a_cut_that_is_given_leaves_out_what_it_does_not_name() -> None:
    found = decisions_of("quest", TARGET, Cut(fusions=frozenset({Fusion.LIST_ATTEND})))
    assert [item.is_accepted for item in found.values()] == [False, False, True]
    assert "left out by the cut" in found[Fusion.SCORE_SELECT].reason


def test_a_cut_cannot_ask_for_what_a_target_does_not_allow() -> None:
    wanted = Cut(fusions=frozenset(Fusion))
    found = decisions_of("quest", replace(TARGET, on_chip_bytes=4096), wanted)
    assert not found[Fusion.SCORE_SELECT].is_accepted


def test_members_without_a_deal_are_refused() -> None:
    with pytest.raises(CodegenError, match="target: found 4 members and pages whole"):
        Target(rows=1, pages=8, members=4)


@pytest.mark.parametrize("fusions", [frozenset(Fusion), frozenset()], ids=["fused", "apart"])
def test_predicted_bytes_are_those_that_a_row_moves(fusions: frozenset[Fusion]) -> None:
    """Other loads of a row are a few numbers; selections from memory stop a pass or two early."""
    tokens, budget = 4 * 512, 40
    file = compile_graph(
        graph_of(registry.get("quest")(), SIZES, "quest"), None, TARGET, Cut(fusions=fusions)
    )
    row = run_row(small_machine(), file, draw_row(SIZES, tokens, 1, ties=False), tokens, budget)
    predicted = file.predicted_bytes(pages=512, listed=len(row.pages))
    assert sum(predicted.values()) == pytest.approx(row.num_bytes, rel=0.15)
    assert set(predicted) == {Stage.SCORING, Stage.SELECTION, Stage.ATTENTION}


def test_dense_attention_is_told_to_read_every_page() -> None:
    file = compile_dense(SIZES, TARGET)
    page = SIZES.page_size * (SIZES.key_dim + SIZES.value_dim) * 2
    bytes_of_pages = file.predicted_bytes(pages=0, listed=512)[Stage.ATTENTION]
    assert 0 < bytes_of_pages - 512 * page < 0.1 * 512 * page


def test_dense_attention_loads_its_block_numbers_once_if_they_are_few_beside_the_registers() -> (
    None
):
    num_bytes = TARGET.pages * 8
    kept = compile_dense(SIZES, replace(TARGET, register_bytes=4 * num_bytes)).text
    loaded = compile_dense(SIZES, replace(TARGET, register_bytes=4 * num_bytes - 1)).text
    assert kept.count("tl.load(table") == 1
    assert kept.count("tl.gather(row_blocks") == 2  # of the first tile, and of the next one
    assert "row_blocks" not in loaded
    assert loaded.count("tl.load(table") == 3
