"""Who accessed each byte since the last time that all was quiet, and which accesses have no order.

For a byte the last write is kept and all reads after it: what came before is known to whoever comes
after them. So a byte on which two accesses race has at least one race that is found.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tilewright.memory.address import MemoryPlace
from tilewright.memory.sanitizer.access import Access, is_ordered
from tilewright.memory.sanitizer.shadow import Numbers, Shadow, Window

NOBODY = 0


class Conflict(NamedTuple):
    """Two accesses to the same bytes, of which nothing says which one is first."""

    earlier: Access
    later: Access
    place: MemoryPlace
    offset: int  # the first byte there
    num_bytes: int


class _Link(NamedTuple):
    """The last link of a chain: a read, and those before it; or a write alone."""

    access: Access
    before: int


_Links = list[_Link | None]  # by number; of nobody there is none


class History:
    """Over the memories of a machine. Accesses are told when they are complete, in that order."""

    def __init__(self, shadows: dict[MemoryPlace, Shadow]) -> None:
        self._shadows = shadows
        self._writers: _Links = [None]
        self._readers: _Links = [None]

    def note(self, access: Access) -> list[Conflict]:
        """From now on others meet it; whom it meets itself without an order."""
        found: list[Conflict] = []
        number = NOBODY
        if access.kind.writes:
            number = len(self._writers)
            self._writers.append(_Link(access, NOBODY))
        for place, segments in access.pieces:
            for window in self._shadows[place].windows(segments):
                found += self._meet(access, place, window, window.writers, self._writers)
                if number:
                    found += self._meet(access, place, window, window.readers, self._readers)
                    window.writers[...] = number
                    window.readers[...] = NOBODY
                else:
                    self._add_reader(access, window)
        return found

    def forget(self) -> None:
        """All accesses so far come before all others."""
        if len(self._writers) == len(self._readers) == 1:
            return
        self._writers = [None]
        self._readers = [None]
        for shadow in self._shadows.values():
            shadow.forget_accesses()

    def _meet(
        self, access: Access, place: MemoryPlace, window: Window, numbers: Numbers, links: _Links
    ) -> Iterator[Conflict]:
        for number in _distinct(numbers):
            link = links[number]
            while link is not None:
                if _conflicts(link.access, access):
                    where = numbers == number
                    first = window.address_of(int(where.argmax()))
                    count = int(np.count_nonzero(where))
                    yield Conflict(link.access, access, place, first, count)
                link = links[link.before]

    def _add_reader(self, access: Access, window: Window) -> None:
        numbers = window.readers
        before = _distinct(numbers)
        if len(before) == 1:
            numbers[...] = self._linked(access, before[0])
            return
        places = [(numbers == number, number) for number in before]
        for place, number in places:
            numbers[place] = self._linked(access, number)

    def _linked(self, access: Access, before: int) -> int:
        link = self._readers[before]
        if link is not None and link.access is access:
            return before  # a byte that is read twice by one access
        self._readers.append(_Link(access, before))
        return len(self._readers) - 1


def _conflicts(earlier: Access, later: Access) -> bool:
    if earlier is later or (earlier.kind.is_atomic and later.kind.is_atomic):
        return False
    return not is_ordered(earlier, later)


def _distinct(numbers: Numbers) -> list[int]:
    """Mostly all bytes of an access have one story."""
    first = int(numbers[0, 0])
    if (numbers == first).all():
        return [first]
    return [int(number) for number in np.unique(numbers)]
