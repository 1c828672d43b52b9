"""The pages of a tensor: which a PE needs, where they are in its memory, and who is told.

A page that several PEs have shards in is a page of each of them; bytes keep their place in it. What
is mapped are bytes: of such a page a PE sees those of its own shard.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from tilewright.errors import OutOfMemoryError
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import PhysicalByte, VirtualByte
from tilewright.memory.allocator import Allocator
from tilewright.memory.mapping import MappingPlan, ShardRange, Sight, plan_mapping
from tilewright.memory.page_table import RangeMapping, VirtualRange
from tilewright.memory.place import MemoryPlace
from tilewright.memory.virtual import VirtualSpace
from tilewright.runtime.placement import Placement, Shard

__all__ = (
    "HomePages",
    "MemoryPart",
    "Piece",
    "Pool",
    "TensorPages",
    "give_back_pages",
    "plan_pages",
    "take_pages",
)


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
    """Bytes of a tensor that are neighbours in its virtual range and in a memory."""

    place: MemoryPlace
    span: range  # of the virtual range
    offset: int  # in the memory


@dataclass(frozen=True, slots=True)
class HomePages:
    """The virtual pages that a PE has, in order. In its memory they are neighbours."""

    home: PeCoord
    ranges: tuple[range, ...]

    @property
    def num_pages(self) -> int:
        return sum(map(len, self.ranges))


def plan_pages(placement: Placement, base: VirtualByte) -> tuple[HomePages, ...]:
    """What each PE with a shard needs, if the tensor begins at a virtual byte (of a page)."""
    first = base // placement.page_bytes
    return tuple(
        HomePages(shard.home, tuple(_page_ranges(shard, placement.page_bytes, first)))
        for shard in placement.shards
    )


def _page_ranges(shard: Shard, page_bytes: int, first_page: int) -> Iterable[range]:
    """The fewest that have all bytes of a shard."""
    found: list[range] = []
    for run in shard.ranges:
        pages = range(run.start // page_bytes, -(-run.stop // page_bytes))
        if found and pages.start <= found[-1].stop:
            found[-1] = range(found[-1].start, pages.stop)
        else:
            found.append(pages)
    return (range(first_page + pages.start, first_page + pages.stop) for pages in found)


@dataclass(frozen=True)
class TensorPages:
    """All the memory of a live tensor."""

    placement: Placement
    base: VirtualByte
    homes: tuple[HomePages, ...]  # one a shard
    offsets: tuple[int, ...]  # where the pages of each are
    mapping: MappingPlan

    def place(self, home: PeCoord) -> MemoryPlace:
        """The memory that a PE's shard is in."""
        return MemoryPlace.of(self.placement.memory, home)

    @cached_property
    def _pieces_of(self) -> Mapping[PeCoord, tuple[Piece, ...]]:
        shards = zip(self.placement.shards, self.homes, self.offsets, strict=True)
        return {
            shard.home: tuple(_pieces(self.placement, self.base, shard, home, offset))
            for shard, home, offset in shards
        }

    def pieces(self, pe: PeCoord) -> tuple[Piece, ...]:
        """Where the bytes of a PE's shard are, in order."""
        self.placement.shard_of(pe)
        return self._pieces_of[pe]

    @cached_property
    def _owned_pieces(self) -> tuple[Piece, ...]:
        """One copy of every byte, in the order of the virtual range."""
        return self._in_order(shard.home for shard in self.placement.owners)

    @cached_property
    def _all_pieces(self) -> tuple[Piece, ...]:
        """All copies of every byte. Two pieces with one byte in common are copies."""
        return self._in_order(self.placement.homes)

    def _in_order(self, homes: Iterable[PeCoord]) -> tuple[Piece, ...]:
        pieces = [piece for home in homes for piece in self._pieces_of[home]]
        return tuple(sorted(pieces, key=_start))

    def read_parts(self, span: range) -> Iterator[tuple[int, MemoryPart]]:
        """Where bytes of the virtual range can be read, and how far behind the first of them."""
        return _overlaps(self._owned_pieces, span)

    def write_parts(self, span: range) -> Iterator[tuple[int, MemoryPart]]:
        """Where they are to be written: all copies of them."""
        return _overlaps(self._all_pieces, span)


def _pieces(
    placement: Placement, base: VirtualByte, shard: Shard, home: HomePages, offset: int
) -> Iterator[Piece]:
    """Yield where the bytes of a shard are; its pages begin at an offset in its memory."""
    page_bytes = placement.page_bytes
    place = MemoryPlace.of(placement.memory, shard.home)
    starts: list[int] = []  # of the page ranges, counted from the base
    shifts: list[int] = []  # from there to the memory
    for pages in home.ranges:
        starts.append(pages.start * page_bytes - base)
        shifts.append(offset - starts[-1])
        offset += len(pages) * page_bytes
    for run in shard.ranges:
        shift = shifts[bisect_right(starts, run.start) - 1]
        yield Piece(place, run, run.start + shift)


def _start(piece: Piece) -> int:
    return piece.span.start


def _overlaps(pieces: Sequence[Piece], span: range) -> Iterator[tuple[int, MemoryPart]]:
    """What pieces, in order and without a gap, have of a span."""
    at = bisect_right(pieces, span.start, key=_start) - 1
    first = bisect_left(pieces, pieces[at].span.start, key=_start)  # of its copies
    for place, there, start in islice(pieces, first, None):
        if there.start >= span.stop:
            break
        both = range(max(span.start, there.start), min(span.stop, there.stop))
        offset = start + both.start - there.start
        yield both.start - span.start, MemoryPart(place, offset, len(both))


def take_pages(placement: Placement, pool: Pool) -> TensorPages:
    """Memory for a tensor; all of it, or none if there is not enough.

    A tensor without elements has one virtual page, so that it has an address, and no other.
    """
    base = pool.space.allocate(max(1, placement.num_bytes), requester=placement.where)
    homes = plan_pages(placement, base)
    offsets: list[int] = []
    try:
        for home in homes:
            num_bytes = home.num_pages * placement.page_bytes
            allocator = pool.allocator_of(MemoryPlace.of(placement.memory, home.home))
            offsets.append(allocator.allocate(num_bytes, requester=placement.where))
    except OutOfMemoryError:
        _give_back(placement, base, homes[: len(offsets)], offsets, pool)
        raise
    sight = Sight.ALL if placement.is_global else Sight.OWN
    ranges = _shard_ranges(placement, base, homes, offsets, pool)
    mapping = plan_mapping(placement.where, ranges, sight)
    return TensorPages(placement, base, homes, tuple(offsets), mapping)


def give_back_pages(pages: TensorPages, pool: Pool) -> None:
    """All of it, once; nobody may be told of them any more."""
    _give_back(pages.placement, pages.base, pages.homes, pages.offsets, pool)


def _give_back(
    placement: Placement,
    base: VirtualByte,
    homes: Iterable[HomePages],
    offsets: Iterable[int],
    pool: Pool,
) -> None:
    pool.space.free(base, max(1, placement.num_bytes))
    for home, offset in zip(homes, offsets, strict=True):
        allocator = pool.allocator_of(MemoryPlace.of(placement.memory, home.home))
        allocator.free(offset, home.num_pages * placement.page_bytes)


def _shard_ranges(
    placement: Placement,
    base: VirtualByte,
    homes: Iterable[HomePages],
    offsets: Iterable[int],
    pool: Pool,
) -> Iterator[ShardRange]:
    """The bytes of all shards, and nothing of the pages beside them."""
    for shard, home, offset in zip(placement.shards, homes, offsets, strict=True):
        # in a memory neighbours have neighbouring addresses: one is enough for all pieces
        shift = pool.physical_of(MemoryPlace.of(placement.memory, home.home), offset) - offset
        for _, span, at in _pieces(placement, base, shard, home, offset):
            virtual = VirtualRange(VirtualByte(base + span.start), len(span))
            yield ShardRange(home.home, RangeMapping(virtual, PhysicalByte(at + shift)))
