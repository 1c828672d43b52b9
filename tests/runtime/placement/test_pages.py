import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.placements import PES, SLICE_BYTES, TARGETS, SmallPool, placements
from tilewright.errors import OutOfMemoryError
from tilewright.host import RuntimeContext
from tilewright.language.dtype import uint8
from tilewright.machine.coords import PeCoord
from tilewright.memory import VirtualByte
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.mapping import num_entries
from tilewright.runtime.placement.pages import (
    TensorPages,
    give_back_pages,
    take_pages,
)
from tilewright.runtime.placement.placement import Placement, Targets, place
from tilewright.runtime.placement.policy import DPPolicy


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
        assert spans == list(shard.ranges)
        for piece in pages.pieces(shard.home):
            start = VirtualByte(pages.base + piece.span.start)
            expected = [(small.physical(shard.home, piece.offset), len(piece.span))]
            assert small.tables[shard.home].runs(start, len(piece.span)) == expected


@given(placement=placements())
def test_a_pe_sees_all_bytes_of_a_global_tensor_and_else_those_of_its_own_shard(
    placement: Placement,
) -> None:
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    small.install(pages.mapping)
    copies = physical_bytes(small, pages)
    for shard in placement.shards:
        seen = {
            one.virtual.first - pages.base + place: one.physical + place
            for one in small.tables[shard.home].mappings
            for place in range(one.virtual.num_bytes)
        }
        if placement.is_global:
            assert set(seen) == set(range(placement.num_bytes))
            assert all(at in copies[byte] for byte, at in seen.items())
        else:
            own = [byte for run in shard.ranges for byte in run]
            assert list(seen) == own


@given(placement=placements())
def test_a_byte_of_several_pes_is_a_byte_in_each_of_them(placement: Placement) -> None:
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    for found in physical_bytes(small, pages).values():
        assert len(set(found)) == len(found)


@given(placement=placements())
def test_a_message_has_an_entry_for_every_range_of_pages(placement: Placement) -> None:
    """As many as if whole pages were mapped: then a map takes the same time."""
    small = SmallPool(placement.page_bytes)
    pages = take_pages(placement, small.pool)
    if placement.is_global:
        return
    ranges_of = {home.shard.home: len(home.ranges) for home in pages.homes}
    for message in pages.mapping.map_messages():
        (pe,) = filter(message.target.has, PES)
        assert num_entries(message.ranges, placement.page_bytes) == ranges_of.pop(pe)
    assert not ranges_of


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
        give_back_pages(pages.placement, pages.base, pages.homes, small.pool)
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
    assert small.used_bytes == 2 * 64  # of virtual space: a page, and the one behind it
    give_back_pages(pages.placement, pages.base, pages.homes, small.pool)
    assert small.used_bytes == 0


def test_pages_are_counted_from_the_tensors_base() -> None:
    targets = Targets(sips=(0,), cubes=(0,), pes=(0, 1))
    placement = place("t", (100,), uint8, DPPolicy(pe="column_wise"), targets, page_bytes=16)
    small = SmallPool(16)
    take_pages(placement, small.pool)
    pages = take_pages(placement, small.pool)
    first = pages.base // 16
    found = [ranges for home in pages.homes for ranges in home.ranges]
    assert first > 0
    assert found == [range(first, first + 4), range(first + 3, first + 7)]


def test_pes_of_a_cube_share_one_copy_in_its_sram() -> None:
    context = RuntimeContext("ahbm-small")
    sram = MemoryPlace.of(MemoryKind.SRAM, PeCoord(0, 0, 0))
    allocator = context.driver.memory.allocator(sram)
    values = np.arange(40_000, dtype=np.float32)  # three pages
    policy = DPPolicy(num_sips=1, num_cubes=2, memory="sram")
    copies = context.empty(values.shape, "f32", dp=policy).copy_(context.from_numpy(values))
    assert allocator.statistics.used_bytes == 3 * context.machine.spec.pe.mmu.page_bytes
    assert np.array_equal(copies.numpy(), values)
    copies.free()
    assert allocator.statistics.used_bytes == 0
