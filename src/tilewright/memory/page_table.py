"""The translations of a PE: ranges of virtual bytes, each in neighbouring physical bytes.

A range has exactly the bytes that exist for the PE, so that whatever lies beside it in its first or
last page is not mapped. Pages matter to the TLB alone.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

from tilewright.errors import AddressError, PageFaultError, RegistryError, UnitError
from tilewright.memory.address import (
    NOWHERE,
    Band,
    PhysicalByte,
    RangeMapping,
    Span,
    VirtualByte,
    VirtualPage,
    VirtualRange,
    bands_of,
)

PhysicalRun = tuple[PhysicalByte, int]
"""Where neighbouring bytes are, and how many."""

GAP = PhysicalByte(-1)
"""The place of a run that stands for bytes between two segments, which nobody accesses."""

_Entry = tuple[int, int, int | Band]  # a span, or the bytes from, to, that a band has some of


@dataclass(frozen=True, eq=False, slots=True)
class _Version:
    """What a table holds between two changes."""

    spans: list[_Entry]
    starts: list[int]


_EMPTY = _Version([], [])


@dataclass(eq=False, slots=True)
class Shared:
    """What one change makes of tables: those that hold the same share the work and the result."""

    after: dict[_Version, _Version] = field(default_factory=dict)
    new: list[_Entry] | None = None  # that are mapped, in order


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
        for entry in self.spans:
            band = entry[2]
            whole = band.num_pages(self.page_bytes) if isinstance(band, Band) else None
            if whole is not None:
                count, counted = count + whole, (entry[1] - 1) >> self._shift
                continue
            for low, high, _ in _spans(entry):
                last = (high - 1) >> self._shift
                count += last - max(counted, (low >> self._shift) - 1)
                counted = last
        return count

    @property
    def mappings(self) -> tuple[RangeMapping, ...]:
        """All there are, each range by itself, in the order of virtual bytes."""
        return tuple(_mapping(span) for entry in self.spans for span in _spans(entry))

    def has_page(self, page: VirtualPage) -> bool:
        """Whether some byte of a page is mapped."""
        start, end = page << self._shift, (page + 1) << self._shift
        place = bisect_left(self._starts, end) - 1  # the last that begins
        if place < 0 or self.spans[place][1] <= start:
            return False
        band = self.spans[place][2]
        return not isinstance(band, Band) or band.overlaps(start, end)

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

    def _new_spans(self, mappings: Iterable[RangeMapping]) -> list[_Entry]:
        singles: list[_Entry] = []
        repeated = []
        for mapping in mappings:
            virtual = mapping.virtual
            is_wrong = virtual.num_bytes < 1 or virtual.first < 0 or mapping.physical < 0
            overlaps = virtual.times > 1 and virtual.step < virtual.num_bytes
            if is_wrong or virtual.times < 1 or overlaps:
                fix = "map at least one byte, and ranges that are apart"
                raise RegistryError(self.name, f"a map of {mapping}", "bytes that there are", fix)
            if virtual.times == 1:
                shift = mapping.physical - virtual.first
                singles.append((virtual.first, virtual.end, shift))
            else:
                repeated.append(mapping)
        bands: list[_Entry] = [(band.low, band.high, band) for band in bands_of(repeated)]
        new = sorted([*singles, *bands], key=itemgetter(0))
        if bands and any(after[0] < before[1] for before, after in pairwise(new)):
            new = _one_by_one(new)
        for before, after in pairwise(new):
            if after[0] < before[1]:
                raise self._mapped_twice(after, before)
        return new

    def _with(self, new: list[_Entry]) -> list[_Entry]:
        if not new:
            return self.spans
        place = bisect_right(self._starts, new[0][0])
        is_behind = not place or self.spans[place - 1][1] <= new[0][0]
        if is_behind and (place == len(self.spans) or new[-1][1] <= self.spans[place][0]):
            return [*self.spans[:place], *new, *self.spans[place:]]
        spans = sorted([*self.spans, *new], key=itemgetter(0))
        if any(after[0] < before[1] for before, after in pairwise(spans)):
            spans = _one_by_one(spans)
        for before, after in pairwise(spans):
            if after[0] < before[1]:
                raise self._mapped_twice(*((before, after) if before in new else (after, before)))
        return spans

    def unmap(self, ranges: Iterable[VirtualRange], shared: Shared | None = None) -> None:
        """Take out ranges as they were mapped; all of them, or none if one is not there."""
        self._change(lambda: self._without(ranges), Shared() if shared is None else shared)

    def _without(self, ranges: Iterable[VirtualRange]) -> list[_Entry]:
        gone: set[Span] = set()
        of_bands: dict[Band, set[VirtualRange]] = {}
        for virtual in ranges:
            band = self._band_at(virtual.first)
            if band is not None and band.has(virtual):
                parts = of_bands.setdefault(band, set())
                if virtual in parts:
                    raise self._not_mapped(virtual)
                parts.add(virtual)
                continue
            for single in virtual.single():
                span = self._span_at(single.first)
                is_own = self._band_at(single.first) is None
                if not is_own or span[:2] != (single.first, single.end) or span in gone:
                    raise self._not_mapped(virtual)
                gone.add(span)
        return list(self._left(gone, of_bands))

    def _left(self, gone: set[Span], of_bands: dict[Band, set[VirtualRange]]) -> Iterator[_Entry]:
        for entry in self.spans:
            band = entry[2]
            if not isinstance(band, Band):
                if entry not in gone:
                    yield entry
                continue
            left = band.without(of_bands.get(band, ()))
            if left is not None:
                yield left.low, left.high, left

    def _band_at(self, address: int) -> Band | None:
        place = bisect_right(self._starts, address) - 1
        band = self.spans[place][2] if place >= 0 else None
        return band if isinstance(band, Band) and address < band.high else None

    def _not_mapped(self, virtual: VirtualRange) -> RegistryError:
        expected = "a range as it was mapped"
        fix = "unmap what was mapped, once"
        return RegistryError(self.name, f"an unmap of {virtual}", expected, fix)

    def _change(self, spans_after: Callable[[], list[_Entry]], shared: Shared) -> None:
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
        self._last: Span = NOWHERE  # that was found last: most accesses are near each other

    def _span_at(self, address: int) -> Span:
        """The span of a virtual byte, or nowhere."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address >= self.spans[place][1]:
            return NOWHERE
        low, high, delta = self.spans[place]
        if isinstance(delta, Band):
            span = delta.span_at(address)
            if span is NOWHERE:
                return span
        else:
            span = low, high, delta
        self._last = span
        return span

    def _mapped_twice(self, span: _Entry, other: _Entry) -> RegistryError:
        virtual, taken = (_mapping(next(_spans(each))).virtual for each in (span, other))
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


def _spans(entry: _Entry) -> Iterator[Span]:
    """All spans of an entry, in order."""
    low, high, delta = entry
    if isinstance(delta, Band):
        yield from delta.spans()
    else:
        yield low, high, delta


def _one_by_one(entries: Iterable[_Entry]) -> list[_Entry]:
    """Without bands, since one has ranges between those of another."""
    return sorted((span for entry in entries for span in _spans(entry)), key=itemgetter(0))


def _mapping(span: Span) -> RangeMapping:
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
