"""Where rows lie: every page with its owner, on whole pages of the MMU, nobody's twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.attention.backends.machine import LayoutSpec, RowLayout, RowPlacement, plan_layout
from tilewright.errors import AttentionError
from tilewright.language.dtype import float16
from tilewright.machine.coords import Grid, PeCoord
from tilewright.runtime.placement.placement import Targets, place

GRID = Grid(num_sips=2, columns=2, rows=1, num_pes_per_cube=4)
PAGE_BYTES = 4096

specs = st.builds(
    LayoutSpec,
    placement=st.sampled_from(list(RowPlacement)),
    num_kv_heads=st.integers(1, 3),
    row_pages=st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple),
    block_bytes=st.fixed_dictionaries(
        {"k": st.sampled_from((32, 120, 4096)), "mean": st.sampled_from((8, 256, 1152))}
    ),
    page_bytes=st.just(PAGE_BYTES),
)


def laid_out(spec: LayoutSpec) -> RowLayout:
    return plan_layout(spec, GRID, (0, 1))


@given(spec=specs)
def test_the_blocks_of_a_piece_are_whole_pages_in_every_pool(spec: LayoutSpec) -> None:
    layout = laid_out(spec)
    for size in spec.block_bytes.values():
        assert layout.span_blocks * size % PAGE_BYTES == 0
    assert layout.span_blocks >= layout.member_pages


@given(spec=specs, seed=st.integers(0, 99))
def test_no_two_pages_share_a_block(spec: LayoutSpec, seed: int) -> None:
    layout = laid_out(spec)
    order = np.random.default_rng(seed).permutation(layout.span_blocks)
    taken = [
        layout.blocks_of(request, pages, order) + head * layout.head_blocks
        for request, pages in enumerate(spec.row_pages)
        for head in range(spec.num_kv_heads)
    ]
    blocks = np.concatenate(taken)
    assert len(np.unique(blocks)) == len(blocks)
    assert 0 <= blocks.min() <= blocks.max() < layout.num_rows * layout.head_blocks


@given(spec=specs)
def test_the_pool_has_a_page_in_the_slice_of_the_pe_that_runs_its_programs(
    spec: LayoutSpec,
) -> None:
    layout = laid_out(spec)
    order = np.arange(layout.span_blocks)
    size = spec.block_bytes["k"]
    shape = (layout.num_pieces, layout.span_blocks * size // 2)
    policy = layout.policy(layout.span_blocks * size)
    pool = place("k", shape, float16, policy, Targets.of_grid(GRID), PAGE_BYTES)
    assert pool.is_global
    for request, pages in enumerate(spec.row_pages):
        blocks = layout.blocks_of(request, pages, order)
        for head in range(spec.num_kv_heads):
            row = request * spec.num_kv_heads + head
            for page in (0, pages // 2, pages - 1):
                block = int(blocks[page]) + head * layout.head_blocks
                member = layout.places_of(page)[0]
                assert pool.owner_of(block * size) == layout.pe_of(row, member)


@given(spec=specs)
def test_a_page_is_found_again_by_its_member_and_place(spec: LayoutSpec) -> None:
    layout = laid_out(spec)
    pages = np.arange(max(spec.row_pages))
    members, places = layout.places_of(pages)
    assert places.max() < layout.member_pages
    for member in range(layout.members):
        found = layout.logical_pages(member, places[members == member])
        assert found.tolist() == pages[members == member].tolist()


def test_stripes_deal_pages_in_turn_and_cubes_cut_the_sequence() -> None:
    spec = LayoutSpec(
        placement=RowPlacement.STRIPE,
        num_kv_heads=1,
        row_pages=(8,),
        block_bytes={"k": 4096},
        page_bytes=PAGE_BYTES,
    )
    dealt = laid_out(spec).places_of(np.arange(8))[0].tolist()
    assert dealt == [0, 1, 2, 3, 0, 1, 2, 3]
    parts = plan_layout(
        LayoutSpec(
            placement=RowPlacement.CUBE,
            num_kv_heads=1,
            row_pages=(8,),
            block_bytes={"k": 4096},
            page_bytes=PAGE_BYTES,
        ),
        GRID,
        (1,),
    )
    assert parts.places_of(np.arange(8))[0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert parts.pe_of(0, 3) == PeCoord(1, 0, 3)


def test_a_row_without_pages_is_refused() -> None:
    spec = LayoutSpec(
        placement=RowPlacement.HEAD,
        num_kv_heads=2,
        row_pages=(),
        block_bytes={"k": 4096},
        page_bytes=PAGE_BYTES,
    )
    with pytest.raises(AttentionError, match=r"layout: found rows of \(\) pages"):
        laid_out(spec)
