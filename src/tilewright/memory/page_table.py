"""Where virtual pages are: ranges of them, each in neighbouring physical pages."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

from tilewright.errors import PageFaultError, RegistryError, UnitError
from tilewright.memory.address import PhysicalByte, PhysicalPage, VirtualByte, VirtualPage

__all__ = ("PageMapping", "PageRange", "PageTable", "PhysicalRun", "Shared")

PhysicalRun = tuple[PhysicalByte, int]
"""Where neighbouring bytes are, and how many."""

_Span = tuple[int, int, int]  # virtual bytes from, to, and what to add for the physical ones
_NOWHERE: _Span = (-(2**64), -(2**64), 0)  # before all addresses, right or wrong


@dataclass(frozen=True, slots=True, order=True)
class PageRange:
    """Neighbouring virtual pages."""

    first: VirtualPage
    num_pages: int

    @property
    def end(self) -> int:
        """The page behind the last."""
        return self.first + self.num_pages

    def __str__(self) -> str:
        return f"virtual pages {self.first}..{self.end - 1}"


@dataclass(frozen=True, slots=True, order=True)
class PageMapping:
    """Virtual pages, and the first of as many physical pages in the same order."""

    pages: PageRange
    physical_page: PhysicalPage


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
    >>> table.map([PageMapping(PageRange(VirtualPage(16), 2), PhysicalPage(7))])
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
        """Pages that are mapped."""
        return sum(high - low for low, high, _ in self.spans) >> self._shift

    @property
    def mappings(self) -> tuple[PageMapping, ...]:
        """All there are, in the order of virtual pages."""
        return tuple(self._mapping(span) for span in self.spans)

    def get(self, page: VirtualPage) -> PhysicalPage | None:
        """Where a page is; None if it is not mapped."""
        address = page << self._shift
        low, high, delta = self._last
        if not low <= address < high:
            low, high, delta = self._span_at(address)
            if low == high:
                return None
        return PhysicalPage((address + delta) >> self._shift)

    def runs(self, address: VirtualByte, num_bytes: int, where: str = "") -> list[PhysicalRun]:
        """The fewest runs of neighbouring physical bytes that hold a range of virtual ones.

        ``where`` is the PE that asks; a PageFaultError names it.
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
                raise self._page_fault(start, address, end - address, where)
            size = min(end, high) - start
            if found and sum(found[-1]) == start + delta:
                found[-1] = (found[-1][0], found[-1][1] + size)
            else:
                found.append((PhysicalByte(start + delta), size))
            start += size
        return found

    def map(self, mappings: Iterable[PageMapping], shared: Shared | None = None) -> None:
        """Add ranges; all of them, or none if one has a page that is mapped already.

        Who maps the same ranges in several tables gives each the same ``shared``, new at first.
        """
        change = Shared() if shared is None else shared
        if change.new is None:
            change.new = self._new_spans(mappings)
        new = change.new
        self._change(lambda: self._with(new), change)

    def _new_spans(self, mappings: Iterable[PageMapping]) -> list[_Span]:
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

    def unmap(self, ranges: Iterable[PageRange], shared: Shared | None = None) -> None:
        """Take out ranges as they were mapped; all of them, or none if one is not there."""
        self._change(lambda: self._without(ranges), Shared() if shared is None else shared)

    def _without(self, ranges: Iterable[PageRange]) -> list[_Span]:
        gone: set[_Span] = set()
        for pages in ranges:
            low, high = pages.first << self._shift, pages.end << self._shift
            span = self._span_at(low)
            if span[:2] != (low, high) or span in gone:
                found = f"an unmap of {pages}"
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

    def _span(self, mapping: PageMapping) -> _Span:
        pages = mapping.pages
        if pages.num_pages < 1 or pages.first < 0 or mapping.physical_page < 0:
            fix = "map at least one page"
            raise RegistryError(self.name, f"a map of {mapping}", "pages that there are", fix)
        delta = mapping.physical_page - pages.first
        return pages.first << self._shift, pages.end << self._shift, delta << self._shift

    def _mapping(self, span: _Span) -> PageMapping:
        low, high, delta = (value >> self._shift for value in span)
        return PageMapping(PageRange(VirtualPage(low), high - low), PhysicalPage(low + delta))

    def _mapped_twice(self, span: _Span, other: _Span) -> RegistryError:
        pages, taken = self._mapping(span).pages, self._mapping(other).pages
        found = f"a map of {pages} while {taken} are mapped"
        return RegistryError(self.name, found, "pages that are free", "unmap them first")

    def _page_fault(self, missing: int, address: int, num_bytes: int, where: str) -> PageFaultError:
        page = missing >> self._shift
        start = page << self._shift
        found = (
            f"an access to {num_bytes} bytes at {address:#x}, of which virtual page {page} "
            f"({start:#x}..{start + self.page_bytes - 1:#x}) is not mapped"
        )
        fix = "map it before the access, or correct the address"
        return PageFaultError(
            where or self.name, found, "mapped pages", fix, address=missing, pe=where
        )
