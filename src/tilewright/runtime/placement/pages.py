"""The pages of a tensor: which a PE needs, where they are in its memory, and who is told.

A page that several PEs have shards in is a page of each of them; bytes keep their place in it. What
is mapped are bytes: of such a page a PE sees those of its own shard.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from tilewright.errors import OutOfMemoryError
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import (
    MemoryPlace,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualRange,
)
from tilewright.memory.allocator import Allocator, VirtualSpace
from tilewright.memory.mapping import MappingPlan, ShardRange, Sight, plan_mapping
from tilewright.memory.runs import (
    Extent,
    Repeat,
    RunIndex,
    Runs,
    extents_of,
    is_aligned,
    num_bytes_of,
)
from tilewright.runtime.placement.placement import Placement, Shard


@dataclass(frozen=True, slots=True)
class Pool:
    """What pages come from: the virtual space of a context, and memories."""

    space: VirtualSpace
    allocator_of: Callable[[MemoryPlace], Allocator]
    physical_of: Callable[[MemoryPlace, int], int]  # the address of an offset there


class MemoryPart(NamedTuple):
    """Neighbouring bytes in a memory."""

    place: MemoryPlace
    offset: int
    num_bytes: int


class Piece(NamedTuple):
    """Bytes of a tensor that are neighbours in its virtual range and in a memory.

    There are as many again ``times`` times, at equal distances in both.
    """

    place: MemoryPlace
    span: range  # of the virtual range
    offset: int  # in the memory
    times: int = 1
    step: int = 0  # from one to the next in the virtual range
    offset_step: int = 0  # the same in the memory

    @property
    def parts(self) -> Iterator[MemoryPart]:
        """All of it in the memory, as few parts."""
        size = len(self.span)
        if self.times == 1 or self.offset_step == size:
            yield MemoryPart(self.place, self.offset, self.times * size)
            return
        for place in range(self.times):
            yield MemoryPart(self.place, self.offset + place * self.offset_step, size)

    def single(self) -> Iterator["Piece"]:
        """Yield each by itself."""
        first = self.span
        for place in range(self.times):
            by = place * self.step
            span = range(first.start + by, first.stop + by)
            yield Piece(self.place, span, self.offset + place * self.offset_step)


@dataclass(frozen=True, slots=True)
class HomePages:
    """The virtual pages that a PE has for its shard, in order. In its memory they are neighbours.

    PEs of a cube that have the same pages of a tensor in SRAM share them.
    """

    shard: Shard
    ranges: Sequence[range]
    offset: int  # of the first in the memory


def _page_ranges(shard: Shard, page_bytes: int, first_page: int) -> Sequence[range]:
    """The fewest that have all bytes of a shard."""
    ranges = shard.ranges
    # ranges that repeat, and begin and end with pages: no two of them share one
    if isinstance(ranges, Runs) and is_aligned(extents_of(ranges), page_bytes, ranges[-1].stop):
        first = first_page * page_bytes
        return Runs([_in_pages(each.shifted(first), page_bytes) for each in ranges.repeats])
    found: list[range] = []
    for run in shard.ranges:
        pages = range(run.start // page_bytes, -(-run.stop // page_bytes))
        if found and pages.start <= found[-1].stop:
            found[-1] = range(found[-1].start, pages.stop)
        else:
            found.append(pages)
    return tuple(range(first_page + pages.start, first_page + pages.stop) for pages in found)


def _in_pages(repeat: Repeat, page_bytes: int) -> Repeat:
    pattern = tuple(
        range(each.start // page_bytes, -(-each.stop // page_bytes)) for each in repeat.pattern
    )
    period = -(-repeat.period // page_bytes)
    return Repeat(repeat.base // page_bytes, period, repeat.times, pattern)


@dataclass(frozen=True)
class TensorPages:
    """All the memory of a live tensor."""

    placement: Placement
    base: VirtualByte
    homes: tuple[HomePages, ...]  # one a shard
    mapping: MappingPlan
    sight: Sight

    @cached_property
    def _pieces_of(self) -> Mapping[PeCoord, tuple[Piece, ...]]:
        return {
            home.shard.home: tuple(_pieces(self.placement, self.base, home)) for home in self.homes
        }

    def repeated_pieces(self, pe: PeCoord) -> tuple[Piece, ...]:
        """Where the bytes of a PE's shard are; pieces that repeat are one."""
        self.placement.shard_of(pe)
        return self._pieces_of[pe]

    def pieces(self, pe: PeCoord) -> tuple[Piece, ...]:
        """Where the bytes of a PE's shard are, in order, each piece by itself."""
        found = [each for piece in self.repeated_pieces(pe) for each in piece.single()]
        return tuple(sorted(found, key=attrgetter("span.start")))

    @cached_property
    def _owned_pieces(self) -> RunIndex[Piece]:
        """One copy of every byte."""
        return self._index(shard.home for shard in self.placement.owners)

    @cached_property
    def _all_pieces(self) -> RunIndex[Piece]:
        """All copies of every byte. Two pieces with one byte in common are copies."""
        return self._index(self.placement.homes)

    def _index(self, homes: Iterable[PeCoord]) -> RunIndex[Piece]:
        pieces = dict.fromkeys(piece for home in homes for piece in self._pieces_of[home])
        return RunIndex(
            (Extent(each.span.start, len(each.span), each.times, each.step), each)
            for each in pieces
        )

    def read_parts(self, span: range) -> Iterator[tuple[int, MemoryPart]]:
        """Where bytes of the virtual range can be read, and how far behind the first of them."""
        return _overlaps(self._owned_pieces, span)

    def write_parts(self, span: range) -> Iterator[tuple[int, MemoryPart]]:
        """Where they are to be written: all copies of them."""
        return _overlaps(self._all_pieces, span)


def _pieces(placement: Placement, base: VirtualByte, home: HomePages) -> Iterator[Piece]:
    """Yield where the bytes of a shard are."""
    page_bytes, shard, offset = placement.page_bytes, home.shard, home.offset
    place = placement.memory_of(shard.home)
    if isinstance(shard.ranges, Runs) and isinstance(home.ranges, Runs):
        yield from _repeated_pieces(page_bytes, place, shard.ranges, home.ranges, offset)
        return
    starts: list[int] = []  # of the page ranges, counted from the base
    shifts: list[int] = []  # from there to the memory
    for pages in home.ranges:
        starts.append(pages.start * page_bytes - base)
        shifts.append(offset - starts[-1])
        offset += len(pages) * page_bytes
    for run in shard.ranges:
        shift = shifts[bisect_right(starts, run.start) - 1]
        yield Piece(place, run, run.start + shift)


def _repeated_pieces(
    page_bytes: int, place: MemoryPlace, ranges: Runs, pages: Runs, offset: int
) -> Iterator[Piece]:
    """Yield where ranges of whole pages are, which lie one behind the other in the memory."""
    for repeat, of_repeat in zip(ranges.repeats, pages.repeats, strict=True):
        sizes = [len(each) * page_bytes for each in of_repeat.pattern]
        for run, size in zip(repeat.pattern, sizes, strict=True):
            if repeat.times == 1:
                yield Piece(place, run, offset)
            else:
                yield Piece(place, run, offset, repeat.times, repeat.period, sum(sizes))
            offset += size
        offset += (repeat.times - 1) * sum(sizes)


def _overlaps(pieces: RunIndex[Piece], span: range) -> Iterator[tuple[int, MemoryPart]]:
    """What pieces, which leave no gap, have of a span."""
    for low, high, owners in pieces.hits(span):
        both = range(max(span.start, low), min(span.stop, high))
        for piece, repetition in owners:
            offset = piece.offset + repetition * piece.offset_step + both.start - low
            yield both.start - span.start, MemoryPart(piece.place, offset, len(both))


def take_pages(
    placement: Placement, pool: Pool, sight: Sight | None = None, cubes: Sequence[int] = ()
) -> TensorPages:
    """Memory for a tensor; all of it, or none if there is not enough.

    A tensor without elements has one virtual page, so that it has an address, and no other.
    ``sight`` says who is told of which bytes; None: all PEs of all bytes if the tensor is global,
    else each PE of its own. ``cubes`` are those of a SIP.
    """
    base = pool.space.allocate(max(1, placement.num_bytes), requester=placement.where)
    homes: list[HomePages] = []
    try:
        taken: dict[tuple[MemoryPlace, Sequence[range]], int] = {}
        for shard in placement.shards:
            place = placement.memory_of(shard.home)
            ranges = _page_ranges(shard, placement.page_bytes, base // placement.page_bytes)
            if (place, ranges) not in taken:  # else PEs share a copy in the SRAM of their cube
                num_bytes = num_bytes_of(ranges) * placement.page_bytes
                allocator = pool.allocator_of(place)
                taken[place, ranges] = allocator.allocate(num_bytes, requester=placement.where)
            homes.append(HomePages(shard, ranges, taken[place, ranges]))
    except OutOfMemoryError:
        give_back_pages(placement, base, homes, pool)
        raise
    if sight is None:
        sight = Sight.ALL if placement.is_global else Sight.OWN
    ranges_told = _shard_ranges(placement, base, homes, pool)
    mapping = plan_mapping(placement.where, ranges_told, sight, cubes)
    return TensorPages(placement, base, tuple(homes), mapping, sight)


def give_back_pages(
    placement: Placement, base: VirtualByte, homes: Iterable[HomePages], pool: Pool
) -> None:
    """Give all pages of a tensor back, once; nobody may be told of them any more."""
    pool.space.free(base, max(1, placement.num_bytes))
    taken = {  # in pages
        (placement.memory_of(home.shard.home), home.offset): num_bytes_of(home.ranges)
        for home in homes
    }
    for (place, offset), num_pages in taken.items():
        pool.allocator_of(place).free(offset, num_pages * placement.page_bytes)


def _shard_ranges(
    placement: Placement, base: VirtualByte, homes: Iterable[HomePages], pool: Pool
) -> Iterator[ShardRange]:
    """Yield the bytes of all shards, and nothing of the pages beside them."""
    for home in homes:
        # in a memory neighbours have neighbouring addresses: one is enough for all pieces
        place = placement.memory_of(home.shard.home)
        shift = pool.physical_of(place, home.offset) - home.offset
        for piece in _pieces(placement, base, home):
            first, size = VirtualByte(base + piece.span.start), len(piece.span)
            virtual = VirtualRange(first, size, piece.times, piece.step)
            physical = PhysicalByte(piece.offset + shift)
            yield ShardRange(home.shard.home, RangeMapping(virtual, physical, piece.offset_step))
