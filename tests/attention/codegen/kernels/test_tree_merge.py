"""Members of a row that join their parts, through memory and over queues."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.attention.flows  # noqa: F401  # registers the ready flows
from tests.attention.codegen.on_machine import draw_row, run_row, small_machine
from tests.attention.triton.pair import geometry_of, graph_of
from tilewright.attention.codegen import (
    Deal,
    Merge,
    Target,
    Tiling,
    compile_dense,
    compile_graph,
)
from tilewright.attention.codegen.kernels.merge import tree_neighbours
from tilewright.attention.flow import registry
from tilewright.attention.graph import DType, FlowKind

TOKENS, BUDGET = 131, 7
SIZES = geometry_of(FlowKind.GQA, DType.FLOAT16, query_heads=8, width=16)
"""Many query heads, so that at each merge some have their largest logit on either side."""
GRAPH = graph_of(registry.get("quest")(), SIZES, "quest")
PAGES = -(-TOKENS // SIZES.page_size)
TILES = Tiling(page_tile=4, row_tile=8, attend_tokens=16)
QUEUES = frozenset({Merge.MEMORY, Merge.IPCQ})


@given(st.integers(1, 300))
def test_every_member_has_a_way_to_member_0_and_back(members: int) -> None:
    table = tree_neighbours(members)
    for member in range(1, members):
        parent = table[member]["parent"]
        assert parent < member
        assert [peer for peer in table[parent].values() if peer == member] == [member]
    assert sum(len(ways) for ways in table.values()) == 2 * (members - 1)


@given(st.integers(2, 300))
def test_no_way_is_longer_than_the_depth_of_the_tree(members: int) -> None:
    table = tree_neighbours(members)
    for member in range(members):
        hops = 0
        while "parent" in table[member]:
            member, hops = table[member]["parent"], hops + 1
        assert hops <= (members - 1).bit_length()


@pytest.mark.parametrize("ties", [False, True], ids=["all differ", "many ties"])
@pytest.mark.parametrize("merges", [frozenset({Merge.MEMORY}), QUEUES], ids=["memory", "queues"])
@pytest.mark.parametrize("deal", [Deal.DEALT, Deal.CONTIGUOUS])
@pytest.mark.parametrize("members", [3, 4])
def test_members_choose_and_attend_as_one_program_does(
    members: int, deal: Deal, merges: frozenset[Merge], ties: bool
) -> None:
    values = draw_row(SIZES, TOKENS, seed=1, ties=ties)
    alone = compile_graph(GRAPH, TILES, Target(rows=1, pages=PAGES))
    alone_row = run_row(small_machine(), alone, values, TOKENS, BUDGET)
    share = Target(rows=1, pages=-(-PAGES // members), members=members, deal=deal, merges=merges)
    file = compile_graph(GRAPH, TILES, share)
    assert file.merge is (Merge.IPCQ if merges == QUEUES else Merge.MEMORY)
    row = run_row(small_machine(), file, values, TOKENS, BUDGET)
    assert row.pages == alone_row.pages
    assert len(row.pages) == BUDGET + 2
    np.testing.assert_allclose(row.output, alone_row.output, atol=2e-3)


def test_queues_join_scoring_and_selection_and_leave_no_merge_to_memory() -> None:
    share = Target(rows=1, pages=9, members=4, deal=Deal.DEALT, merges=QUEUES)
    file = compile_graph(GRAPH, TILES, share)
    assert [kernel.name for kernel in file.step] == ["decode_row"]
    assert not any(item.name.startswith("part_") for item in file.scratch)


@pytest.mark.parametrize(
    ("members", "register_bytes"), [(1, 2**19), (4, 2**19), (1, 8)], ids=["a row", "members", "few"]
)
def test_a_budget_for_every_page_gives_dense_attention_bit_for_bit(
    members: int, register_bytes: int
) -> None:
    deal = Deal.WHOLE if members == 1 else Deal.CONTIGUOUS
    target = Target(
        rows=1,
        pages=-(-PAGES // members),
        members=members,
        deal=deal,
        register_bytes=register_bytes,
        merges=QUEUES,
    )
    values = draw_row(SIZES, TOKENS, seed=2, ties=False)
    dense, sparse = compile_dense(SIZES, target, TILES), compile_graph(GRAPH, TILES, target)
    rows = [run_row(small_machine(), file, values, TOKENS, PAGES) for file in (dense, sparse)]
    assert rows[1].pages == list(range(PAGES))
    assert np.array_equal(rows[0].output, rows[1].output)
    assert np.abs(rows[0].output).max() > 0
