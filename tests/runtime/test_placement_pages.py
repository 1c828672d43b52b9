import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.placements import PES, SLICE_BYTES, TARGETS, SmallPool, placements
from tilewright.errors import OutOfMemoryError
from tilewright.language.dtype import uint8
from tilewright.memory import VirtualByte, VirtualPage
from tilewright.runtime.placement import Placement, Targets, place
from tilewright.runtime.placement_pages import (
    TensorPages,
    give_back_pages,
    plan_pages,
    take_pages,
)
from tilewright.runtime.policy import DPPolicy


def physical_bytes(small: SmallPool, pages: TensorPages) -> dict[int, list[int]]:
    """For each byte of the virtual range, where its copies are."""
    found: dict[int, list[int]] = {}
    for home in pages.placement.homes:
        for piece in pages.pieces(home):
            for place_in_piece, byte in enumerate(piece.span):
                at = small.physical(home, piece.offset + place_in_piece)
                found.setdefault(byte, []).append(at)
    return found


@given(placement=placements())
def test_a_pe_finds_the_bytes_of_its_shard_through_its_page_table(placement: Placement) -> None:
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    small.install(pages.mapping)
    for shard in placement.shards:
        spans = [piece.span for piece in pages.pieces(shard.home)]
        assert tuple(spans) == shard.ranges
        for piece in pages.pieces(shard.home):
            start = VirtualByte(pages.base + piece.span.start)
            expected = [(small.physical(shard.home, piece.offset), len(piece.span))]
            assert small.tables[shard.home].runs(start, len(piece.span)) == expected


@given(placement=placements())
def test_a_pe_sees_all_of_a_global_tensor_and_else_its_own_pages(placement: Placement) -> None:
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    small.install(pages.mapping)
    copies = physical_bytes(small, pages)
    for home_pages in pages.homes:
        table = small.tables[home_pages.home]
        if placement.is_global:
            runs = table.runs(pages.base, placement.num_bytes)
            seen = np.concatenate([np.arange(start, start + size) for start, size in runs])
            assert all(at in copies[byte] for byte, at in enumerate(seen.tolist()))
        else:
            assert len(table) == home_pages.num_pages


@given(placement=placements())
def test_a_page_of_several_pes_is_a_page_in_each_of_them(placement: Placement) -> None:
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    small.install(pages.mapping)
    homes: dict[int, list[int]] = {}
    for home_pages in pages.homes:
        for part in home_pages.ranges:
            for page in range(part.first, part.end):
                physical = small.tables[home_pages.home].get(VirtualPage(page))
                assert physical is not None
                homes.setdefault(page, []).append(physical)
    for found in homes.values():
        assert len(set(found)) == len(found)


@given(data=st.data())
def test_nothing_is_left_when_all_tensors_are_gone(data: st.DataObject) -> None:
    first = data.draw(placements())
    small = SmallPool(first.page_bytes)
    some = [first, *data.draw(st.lists(placements(), max_size=3))]
    taken = []
    for placement in some:
        if placement.page_bytes == small.page_bytes:
            taken.append(take_pages(placement, small.pool))
            small.install(taken[-1].mapping)
    for pages in data.draw(st.permutations(taken)):
        small.remove(pages.mapping)
        give_back_pages(pages, small.pool)
    assert small.used_bytes == 0
    assert not any(map(len, small.tables.values()))


def test_a_tensor_that_does_not_fit_takes_nothing() -> None:
    small = SmallPool(64)
    small.allocators[PES[5]].allocate(SLICE_BYTES, requester="somebody")
    before = small.used_bytes
    placement = place("big", (4096,), uint8, DPPolicy(), TARGETS, page_bytes=64)
    with pytest.raises(OutOfMemoryError, match=r"sip0\.cube2\.pe1.*asked for by tensor 'big'"):
        take_pages(placement, small.pool)
    assert small.used_bytes == before


def test_an_empty_tensor_has_an_address_and_no_page() -> None:
    small = SmallPool(64)
    pages = take_pages(place("t", (0,), uint8, DPPolicy(), TARGETS, page_bytes=64), small.pool)
    assert pages.homes == ()
    assert pages.mapping.map_messages() == ()
    assert small.used_bytes == 64  # of virtual space
    give_back_pages(pages, small.pool)
    assert small.used_bytes == 0


def test_pages_are_counted_from_the_tensors_base() -> None:
    targets = Targets(sips=(0,), cubes=(0,), pes=(0, 1))
    placement = place("t", (100,), uint8, DPPolicy(pe="column_wise"), targets, page_bytes=16)
    found = [str(part) for home in plan_pages(placement, VirtualByte(160)) for part in home.ranges]
    assert found == ["virtual pages 10..13", "virtual pages 13..16"]
