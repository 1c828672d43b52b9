"""The translations of a PE: ranges of virtual bytes, each in neighbouring physical bytes.

A range has exactly the bytes that exist for the PE, so that whatever lies beside it in its first or
last page is not mapped. Pages matter to the TLB alone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

from tilewright.errors import AddressError, PageFaultError, RegistryError, UnitError
from tilewright.memory.address import PhysicalByte, VirtualByte, VirtualPage

__all__ = ("GAP", "PageTable", "PhysicalRun", "RangeMapping", "Shared", "VirtualRange")

PhysicalRun = tuple[PhysicalByte, int]
"""Where neighbouring bytes are, and how many."""

GAP = PhysicalByte(-1)
"""The place of a run that stands for bytes between two segments, which nobody accesses."""

_Span = tuple[int, int, int]  # virtual bytes from, to, and what to add for the physical ones
_NOWHERE: _Span = (-(2**64), -(2**64), 0)  # before all addresses, right or wrong


@dataclass(frozen=True, slots=True, order=True)
class VirtualRange:
    """Neighbouring virtual bytes."""

    first: VirtualByte
    num_bytes: int

    @property
    def end(self) -> int:
        """The byte behind the last."""
        return self.first + self.num_bytes

    def __str__(self) -> str:
        return f"virtual bytes {self.first:#x}..{self.end - 1:#x}"


@dataclass(frozen=True, slots=True, order=True)
class RangeMapping:
    """Virtual bytes, and the first of as many physical bytes in the same order."""

    virtual: VirtualRange
    physical: PhysicalByte


@dataclass(frozen=True, eq=False, slots=True)
class _Version:
    """What a table holds between two changes."""

    spans: list[_Span]
    starts: list[int]


_EMPTY = _Version([], [])


@dataclass(eq=False, slots=True)
class Shared:
    """What one change makes of tables: those that hold the same share the work and the result."""

    after: dict[_Version, _Version] = field(default_factory=dict)
    new: list[_Span] | None = None  # that are mapped, in order


class PageTable:
    """The translations of one PE. What is mapped as one range is unmapped as one.

    >>> table = PageTable("sip0.cube3.pe5.mmu", page_bytes=4096)
    >>> table.map([RangeMapping(VirtualRange(VirtualByte(0x10000), 0x1200), PhysicalByte(0x7000))])
    >>> table.runs(VirtualByte(0x10F00), 0x200)
    [(32512, 512)]
    """

    __slots__ = ("_last", "_shift", "_starts", "_version", "name", "page_bytes", "spans")

    def __init__(self, name: str, page_bytes: int) -> None:
        self.name = name
        self.page_bytes = page_bytes
        self._shift = page_bytes.bit_length() - 1
        self._become(_EMPTY)

    def __repr__(self) -> str:
        return f"<PageTable {self.name!r}, {len(self)} pages in {len(self.spans)} ranges>"

    def __len__(self) -> int:
        """Pages that have mapped bytes."""
        count, counted = 0, -1  # the last page that was counted
        for low, high, _ in self.spans:
            last = (high - 1) >> self._shift
            count += last - max(counted, (low >> self._shift) - 1)
            counted = last
        return count

    @property
    def mappings(self) -> tuple[RangeMapping, ...]:
        """All there are, in the order of virtual bytes."""
        return tuple(map(_mapping, self.spans))

    def has_page(self, page: VirtualPage) -> bool:
        """Whether some byte of a page is mapped."""
        place = bisect_left(self._starts, (page + 1) << self._shift) - 1  # the last that begins
        return place >= 0 and self.spans[place][1] > page << self._shift

    def runs(self, address: VirtualByte, num_bytes: int, where: str = "") -> list[PhysicalRun]:
        """The fewest runs of neighbouring physical bytes that hold a range of virtual ones.

        ``where`` is the PE that asks; an AddressError names it.
        """
        low, high, delta = self._last
        end = address + num_bytes
        if not low <= address < high:
            low, high, delta = self._span_at(address)
        if address < end <= high:  # mostly
            return [(PhysicalByte(address + delta), num_bytes)]
        if num_bytes < 1:
            found = f"an access to {num_bytes} bytes at {address:#x}"
            raise UnitError(where or self.name, found, "at least 1 byte", "correct the access")
        return self._find_runs(address, end, where)

    def _find_runs(self, address: int, end: int, where: str) -> list[PhysicalRun]:
        found: list[PhysicalRun] = []
        start = address
        while start < end:
            low, high, delta = self._span_at(start)
            if low == high:
                raise self._fault(start, address, end - address, where)
            size = min(end, high) - start
            _append(found, start + delta, size)
            start += size
        return found

    def strided_runs(self, segments: range, segment_bytes: int, where: str) -> list[PhysicalRun]:
        """Runs from the first to the last byte of segments, which begin at ``segments``.

        Every byte of a segment is mapped; bytes between two segments need not be, and are part of a
        run or a run at ``GAP``.
        """
        for address in segments:
            self.runs(VirtualByte(address), segment_bytes, where)
        found: list[PhysicalRun] = []
        start, end = segments[0], segments[-1] + segment_bytes
        while start < end:
            low, high, delta = self._span_at(start)
            if low == high:
                size = (segments[0] - start) % segments.step  # to the next segment
                found.append((GAP, size))
            else:
                size = min(end, high) - start
                _append(found, start + delta, size)
            start += size
        return found

    def map(self, mappings: Iterable[RangeMapping], shared: Shared | None = None) -> None:
        """Add ranges; all of them, or none if one has a byte that is mapped already.

        Who maps the same ranges in several tables gives each the same ``shared``, new at first.
        """
        change = Shared() if shared is None else shared
        if change.new is None:
            change.new = self._new_spans(mappings)
        new = change.new
        self._change(lambda: self._with(new), change)

    def _new_spans(self, mappings: Iterable[RangeMapping]) -> list[_Span]:
        new = sorted(self._span(mapping) for mapping in mappings)
        for before, after in pairwise(new):
            if after[0] < before[1]:
                raise self._mapped_twice(after, before)
        return new

    def _with(self, new: list[_Span]) -> list[_Span]:
        if not new:
            return self.spans
        place = bisect_right(self._starts, new[0][0])
        if place != bisect_right(self._starts, new[-1][0]):  # there are others in between
            for span in new:
                self._check_free(span, bisect_right(self._starts, span[0]))
            return sorted([*self.spans, *new])
        for span in (new[0], new[-1]):
            self._check_free(span, place)
        return [*self.spans[:place], *new, *self.spans[place:]]

    def _check_free(self, span: _Span, place: int) -> None:
        """Refuse a span that overlaps one of those beside its place."""
        for other in self.spans[max(0, place - 1) : place + 1]:
            if span[0] < other[1] and other[0] < span[1]:
                raise self._mapped_twice(span, other)

    def unmap(self, ranges: Iterable[VirtualRange], shared: Shared | None = None) -> None:
        """Take out ranges as they were mapped; all of them, or none if one is not there."""
        self._change(lambda: self._without(ranges), Shared() if shared is None else shared)

    def _without(self, ranges: Iterable[VirtualRange]) -> list[_Span]:
        gone: set[_Span] = set()
        for virtual in ranges:
            span = self._span_at(virtual.first)
            if span[:2] != (virtual.first, virtual.end) or span in gone:
                found = f"an unmap of {virtual}"
                expected = "a range as it was mapped"
                raise RegistryError(self.name, found, expected, "unmap what was mapped, once")
            gone.add(span)
        return [span for span in self.spans if span not in gone]

    def _change(self, spans_after: Callable[[], list[_Span]], shared: Shared) -> None:
        version = shared.after.get(self._version)
        if version is None:
            spans = spans_after()
            version = _Version(spans, list(map(itemgetter(0), spans)))
            shared.after[self._version] = version
        self._become(version)

    def _become(self, version: _Version) -> None:
        self._version = version
        self.spans = version.spans  # in order; another list whenever it changes
        self._starts = version.starts
        self._last = _NOWHERE  # the span that was found last: most accesses are near each other

    def _span_at(self, address: int) -> _Span:
        """The span of a virtual byte, or nowhere."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self.spans[place][1]:
            return _NOWHERE
        self._last = self.spans[place]
        return self._last

    def _span(self, mapping: RangeMapping) -> _Span:
        virtual = mapping.virtual
        if virtual.num_bytes < 1 or virtual.first < 0 or mapping.physical < 0:
            fix = "map at least one byte"
            raise RegistryError(self.name, f"a map of {mapping}", "bytes that there are", fix)
        return virtual.first, virtual.end, mapping.physical - virtual.first

    def _mapped_twice(self, span: _Span, other: _Span) -> RegistryError:
        virtual, taken = _mapping(span).virtual, _mapping(other).virtual
        found = f"a map of {virtual} while {taken} are mapped"
        return RegistryError(self.name, found, "bytes that are free", "unmap them first")

    def _fault(self, missing: int, address: int, num_bytes: int, where: str) -> AddressError:
        page = missing >> self._shift
        start = page << self._shift
        found = f"an access to {num_bytes} bytes at {address:#x}, of which "
        extent = f"virtual page {page} ({start:#x}..{start + self.page_bytes - 1:#x})"
        if self.has_page(VirtualPage(page)):
            found += f"{missing:#x} is nothing that the PE has in {extent}"
            fix = "correct the address"
            expected = "bytes that are mapped"
            return AddressError(where or self.name, found, expected, fix, missing, where)
        found += f"{extent} is not mapped"
        fix = "map it before the access, or correct the address"
        return PageFaultError(where or self.name, found, "mapped pages", fix, missing, where)


def _mapping(span: _Span) -> RangeMapping:
    low, high, delta = span
    return RangeMapping(VirtualRange(VirtualByte(low), high - low), PhysicalByte(low + delta))


def _append(runs: list[PhysicalRun], physical: int, num_bytes: int) -> None:
    """Add a run at the end, joined to the one before it, also across a gap, where it can be."""
    gap = runs.pop() if runs and runs[-1][0] == GAP else None
    between = gap[1] if gap else 0
    if runs and sum(runs[-1]) + between == physical:
        runs[-1] = (runs[-1][0], runs[-1][1] + between + num_bytes)
        return
    if gap:
        runs.append(gap)
    runs.append((PhysicalByte(physical), num_bytes))
