"""Program order of memory accesses: which earlier commands an access has to come after."""

from collections import deque
from typing import NamedTuple

__all__ = ("AccessOrder", "Span")

PAGE_SHIFT = 16


class Span(NamedTuple):
    """Segments at equal distances: where an access touches memory."""

    address: int
    num_segments: int
    segment_bytes: int
    stride_bytes: int

    @property
    def end(self) -> int:
        return self.address + (self.num_segments - 1) * self.stride_bytes + self.segment_bytes

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
    """Remembers the accesses of a program as long as they can be under way, page by page."""

    __slots__ = ("_reads", "_window", "_writes")

    def __init__(self, window: int) -> None:
        self._window = window
        self._reads: dict[int, deque[_Entry]] = {}
        self._writes: dict[int, deque[_Entry]] = {}

    def before_read(self, spans: list[Span], command: int) -> list[int]:
        """Writes that a read of this command comes after."""
        return _overlapping(self._writes, spans, command - self._window) if self._writes else []

    def before_write(self, spans: list[Span], command: int) -> list[int]:
        """Reads and writes that a write of this command comes after."""
        oldest = command - self._window
        return _overlapping(self._reads, spans, oldest) + _overlapping(self._writes, spans, oldest)

    def note_read(self, spans: list[Span], command: int, task: int) -> None:
        _note(self._reads, spans, command, task, command - self._window)

    def note_write(self, spans: list[Span], command: int, task: int) -> None:
        _note(self._writes, spans, command, task, command - self._window)


def _note(
    table: dict[int, deque[_Entry]], spans: list[Span], command: int, task: int, oldest: int
) -> None:
    for span in spans:
        entry = _Entry(command, task, span)
        for page in range(span.address >> PAGE_SHIFT, (span.end - 1 >> PAGE_SHIFT) + 1):
            entries = table.get(page)
            if entries is None:
                entries = table[page] = deque()
            while entries and entries[0].command <= oldest:
                entries.popleft()
            entries.append(entry)


def _overlapping(table: dict[int, deque[_Entry]], spans: list[Span], oldest: int) -> list[int]:
    tasks: dict[int, None] = {}
    for span in spans:
        for page in range(span.address >> PAGE_SHIFT, (span.end - 1 >> PAGE_SHIFT) + 1):
            for entry in table.get(page, ()):
                if entry.command > oldest and entry.span.overlaps(span):
                    tasks[entry.task] = None
    return list(tasks)
