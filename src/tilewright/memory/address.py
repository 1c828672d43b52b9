"""Virtual and physical bytes: their numbers, the memories they are in, ranges that repeat.

Every access of a program goes through the numbers, so they cost nothing when it runs. The checked
values of ``machine.address`` are for the borders, where an address is made or read by people.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.runs import Extent

VirtualByte = NewType("VirtualByte", int)
PhysicalByte = NewType("PhysicalByte", int)
VirtualPage = NewType("VirtualPage", int)


class MemoryKind(StrEnum):
    """The memories that a program can address."""

    HBM = "hbm"  # the slice of a PE
    SRAM = "sram"  # of a cube
    TCM = "tcm"  # of a PE


class MemoryPlace(NamedTuple):
    """One memory. An SRAM goes by the first PE of its cube.

    >>> str(MemoryPlace.of(MemoryKind.SRAM, PeCoord(0, 3, 5)))
    'sip0.cube3.sram'
    """

    kind: MemoryKind
    pe: PeCoord

    @classmethod
    def of(cls, kind: MemoryKind, pe: PeCoord) -> "MemoryPlace":
        """The memory of this kind that a PE has, or its cube."""
        return cls(kind, PeCoord(pe.sip, pe.cube, 0) if kind is MemoryKind.SRAM else pe)

    def __str__(self) -> str:
        where = self.pe.cube_coord if self.kind is MemoryKind.SRAM else self.pe
        return f"{place_name(where)}.{self.kind.value}"


class Segments(NamedTuple):
    """Segments of bytes at equal distances, in one memory or in virtual addresses."""

    address: int
    num_segments: int
    segment_bytes: int
    stride_bytes: int

    @property
    def end(self) -> int:
        return self.address + (self.num_segments - 1) * self.stride_bytes + self.segment_bytes


class VirtualRange(Extent):
    """Neighbouring virtual bytes, and as many again ``times`` times at equal distances."""

    __slots__ = ()

    def __str__(self) -> str:
        last = self.first + self.num_bytes - 1
        text = f"virtual bytes {self.first:#x}..{last:#x}"
        return text if self.times == 1 else f"{text}, {self.times} times {self.step:#x} apart"


@dataclass(frozen=True, slots=True, order=True)
class RangeMapping:
    """Virtual bytes, and the first of as many physical bytes in the same order."""

    virtual: VirtualRange
    physical: PhysicalByte
    physical_step: int = 0  # from one range to the next, if they are several


Span = tuple[int, int, int]  # virtual bytes from, to, and what to add for the physical ones
NOWHERE: Span = (-(2**64), -(2**64), 0)  # before all addresses, right or wrong


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """Mappings whose ranges repeat together, in the order of their first ranges.

    >>> from tilewright.memory.address import PhysicalByte, VirtualByte
    >>> halves = [
    ...     RangeMapping(VirtualRange(VirtualByte(16 * half), 16, 100, 32), PhysicalByte(base), 16)
    ...     for half, base in ((0, 1000), (1, 9000))
    ... ]
    >>> (band,) = bands_of(halves)
    >>> band.span_at(32 * 7 + 18)
    (240, 256, 8872)
    """

    mappings: tuple[RangeMapping, ...]
    starts: tuple[int, ...]

    @property
    def low(self) -> int:
        return self.starts[0]

    @property
    def high(self) -> int:
        return self.mappings[-1].virtual.end

    @property
    def step(self) -> int:
        return self.mappings[0].virtual.step

    def span_at(self, address: int) -> Span:
        """Return the range of a virtual byte between ``low`` and ``high``, or nowhere."""
        repetition = (address - self.low) // self.step
        by = repetition * self.step
        mapping = self.mappings[bisect_right(self.starts, address - by) - 1]
        low = mapping.virtual.first + by
        if address >= low + mapping.virtual.num_bytes:
            return NOWHERE
        physical = mapping.physical + repetition * mapping.physical_step
        return low, low + mapping.virtual.num_bytes, physical - low

    def overlaps(self, low: int, high: int) -> bool:
        """Return whether some virtual byte from ``low`` up to ``high`` is mapped."""
        address = max(low, self.low)
        if address >= min(high, self.high):
            return False
        by = (address - self.low) // self.step * self.step
        place = bisect_right(self.starts, address - by)
        following = (
            self.starts[place] + by if place < len(self.starts) else self.low + by + self.step
        )
        return self.span_at(address) is not NOWHERE or following < min(high, self.high)

    def spans(self) -> Iterator[Span]:
        """Yield all ranges, each by itself, in order."""
        for repetition in range(self.mappings[0].virtual.times):
            by = repetition * self.step
            for mapping in self.mappings:
                low = mapping.virtual.first + by
                physical = mapping.physical + repetition * mapping.physical_step
                yield low, low + mapping.virtual.num_bytes, physical - low

    def num_pages(self, page_bytes: int) -> int | None:
        """Return how many pages it has; None if its ranges do not begin and end with pages."""
        ranges = [each.virtual for each in self.mappings]
        if self.step % page_bytes or any(
            each.first % page_bytes or each.num_bytes % page_bytes for each in ranges
        ):
            return None
        return sum(each.num_bytes * each.times for each in ranges) // page_bytes

    def has(self, virtual: VirtualRange) -> bool:
        """Return whether these ranges were mapped as one."""
        return any(each.virtual == virtual for each in self.mappings)

    def without(self, ranges: Collection[VirtualRange]) -> "Band | None":
        """Return the band that is left; None if nothing is."""
        left = [each for each in self.mappings if each.virtual not in ranges]
        return _band(left) if left else None


def bands_of(mappings: Iterable[RangeMapping]) -> list[Band]:
    """Return mappings that repeat, as few bands. Ranges may still overlap from band to band."""
    groups: list[list[RangeMapping]] = []
    for mapping in sorted(mappings):
        virtual = mapping.virtual
        first = groups[-1][0].virtual if groups else None
        before = groups[-1][-1].virtual if groups else None
        if (
            first is not None
            and before is not None
            and (first.times, first.step) == (virtual.times, virtual.step)
            and virtual.first >= before.first + before.num_bytes
            and virtual.first + virtual.num_bytes <= first.first + first.step
        ):
            groups[-1].append(mapping)
        else:
            groups.append([mapping])
    return list(map(_band, groups))


def _band(mappings: list[RangeMapping]) -> Band:
    return Band(tuple(mappings), tuple(each.virtual.first for each in mappings))
