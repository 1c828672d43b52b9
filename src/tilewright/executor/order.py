"""Program order of memory accesses: which earlier commands an access has to come after."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tilewright.memory.address import Segments
from tilewright.memory.sanitizer.access import NOWHERE, Places

PAGE_SHIFT = 16


class Span(Segments):
    """Where an access touches memory."""

    __slots__ = ()

    @property
    def pages(self) -> range:
        return range(self.address >> PAGE_SHIFT, (self.end - 1 >> PAGE_SHIFT) + 1)

    def overlaps(self, other: "Span") -> bool:
        """Exact for equal strides and for single segments; else true where the hulls meet."""
        if self.end <= other.address or other.end <= self.address:
            return False
        stride = self.stride_bytes if self.num_segments > 1 else other.stride_bytes
        for span in (self, other):
            if span.num_segments > 1 and span.stride_bytes != stride:
                return True
        if stride < max(self.segment_bytes, other.segment_bytes):
            return True
        ahead = (other.address - self.address) % stride
        return ahead < self.segment_bytes or stride - ahead < other.segment_bytes


class _Entry(NamedTuple):
    command: int
    task: int
    span: Span


class AccessOrder:
    """Remembers the accesses of a program as long as they can be under way, page by page.

    Accesses to the same bytes come one after the other, if one of them writes. Beyond that a write
    may *release*: it comes after all accesses before it. An access may *acquire*: all accesses
    behind it come after it.
    """

    __slots__ = ("_acquired", "_reads", "_recent", "_releases", "_window", "_writes")

    def __init__(self, window: int) -> None:
        self._window = window
        self._reads: dict[int, deque[_Entry]] = {}
        self._writes: dict[int, deque[_Entry]] = {}
        self._recent: deque[tuple[int, int]] = deque()  # command and task of all of them
        self._releases = False  # the next write
        self._acquired: tuple[int, int] | None = None  # command and task of the last that did

    def before_read(self, spans: list[Span], command: int) -> list[int]:
        """What a read of this command comes after: writes to its bytes."""
        oldest = command - self._window
        found = _overlapping(self._writes, spans, oldest) if self._writes else []
        return found + self._acquired_after(oldest)

    def before_write(self, spans: list[Span], command: int) -> list[int]:
        """What a write of this command comes after: reads and writes of its bytes, or all."""
        oldest = command - self._window
        if self._releases:
            return [task for issued, task in self._recent if issued > oldest]
        found = _overlapping(self._reads, spans, oldest)
        found += _overlapping(self._writes, spans, oldest)
        return found + self._acquired_after(oldest)

    def note_read(self, spans: list[Span], command: int, task: int) -> None:
        self._note(self._reads, spans, command, task)

    def note_write(self, spans: list[Span], command: int, task: int) -> None:
        self._note(self._writes, spans, command, task)
        self._releases = False

    def release(self, wanted: bool) -> None:
        """Whether the next write comes after all accesses before it."""
        self._releases = wanted

    def acquire(self, command: int, task: int) -> None:
        """All accesses from now on come after this one."""
        self._acquired = command, task

    def _acquired_after(self, oldest: int) -> list[int]:
        return [] if self._acquired is None or self._acquired[0] <= oldest else [self._acquired[1]]

    def _note(
        self, table: dict[int, deque[_Entry]], spans: list[Span], command: int, task: int
    ) -> None:
        oldest, recent = command - self._window, self._recent
        while recent and recent[0][0] <= oldest:
            recent.popleft()
        recent.append((command, task))
        for span in spans:
            entry = _Entry(command, task, span)
            for page in span.pages:
                entries = table.get(page)
                if entries is None:
                    entries = table[page] = deque()
                while entries and entries[0].command <= oldest:
                    entries.popleft()
                entries.append(entry)


def _overlapping(table: dict[int, deque[_Entry]], spans: list[Span], oldest: int) -> list[int]:
    tasks: dict[int, None] = {}
    for span in spans:
        for page in span.pages:
            for entry in table.get(page, ()):
                if entry.command > oldest and entry.span.overlaps(span):
                    tasks[entry.task] = None
    return list(tasks)


Table = dict[int, dict[Span, Places]]
"""By page and span: the accesses that are complete when those to this span are."""


class SpanOrder:
    """Program order of accesses however long ago: `AccessOrder` forgets those that have ended.

    Accesses of one span are kept together, so that loops do not add up.
    """

    __slots__ = ("_reads", "_writes")

    def __init__(self) -> None:
        self._reads: Table = {}
        self._writes: Table = {}

    def before(self, spans: Sequence[Span], *, writes: bool) -> Places:
        """What an access to these spans comes after: writes, and if it writes itself reads too."""
        found = _places_overlapping(self._writes, spans) if self._writes else NOWHERE
        return found | _places_overlapping(self._reads, spans) if writes else found

    def note(self, spans: Sequence[Span], places: Places, *, writes: bool) -> None:
        """An access to these spans: its own place and all before it."""
        table = self._writes if writes else self._reads
        for span in spans:
            for page in span.pages:
                known = table.setdefault(page, {})
                known[span] = places if writes else known.get(span, NOWHERE) | places


def _places_overlapping(table: Table, spans: Sequence[Span]) -> Places:
    found = NOWHERE
    for span in spans:
        for page in span.pages:
            for other, before in table.get(page, {}).items():
                if other.overlaps(span):
                    found |= before
    return found
