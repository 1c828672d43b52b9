"""The events of the reference core that have not run yet."""

from bisect import insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from operator import length_hint
from typing import Any

__all__ = ("BUCKET_SHIFT", "Event", "EventQueue")

Event = tuple[int, int, int, int, Any]  # time, phase, id, tie-breaker, what it is about

BUCKET_SHIFT = 10  # a bucket is about a nanosecond, less than most hops take


class EventQueue:
    """Events in the order of their keys.

    They lie in buckets by time, and a bucket is sorted when its turn comes: one sort of twenty
    events compares half as often as a heap does. What is pushed into the open bucket finds its
    place among those that are left.

    >>> queue = EventQueue()
    >>> queue.push((5, 2, 0, 7, "later"))
    >>> queue.push((5, 1, 3, 0, "first"))
    >>> queue.open()
    True
    >>> [what for *_, what in queue.left]
    ['first', 'later']
    >>> queue.open(), bool(queue)
    (False, False)
    """

    __slots__ = ("_num_closed", "_numbers", "_open", "_open_number", "buckets", "left")

    def __init__(self) -> None:
        self.buckets: dict[int, list[Event]] = {}  # by time >> BUCKET_SHIFT; the open one is out
        self.left: Iterator[Event] = iter(())  # of the open bucket
        self._numbers: list[int] = []  # of the buckets, a heap
        self._open: list[Event] = []
        self._open_number = -1
        self._num_closed = 0  # events that have run and are forgotten

    def __bool__(self) -> bool:
        return bool(self.buckets) or length_hint(self.left) > 0

    @property
    def num_taken(self) -> int:
        return self._num_closed + self._place

    def push(self, event: Event) -> None:
        number = event[0] >> BUCKET_SHIFT
        if number in self.buckets:
            self.buckets[number].append(event)
        elif number == self._open_number:
            insort(self._open, event, len(self._open) - length_hint(self.left))
        else:
            self.buckets[number] = [event]
            heappush(self._numbers, number)

    def open(self) -> bool:
        """Whether events are left; if the open bucket has none, the next one is opened."""
        if length_hint(self.left):
            return True
        if not self._numbers:
            self._open_number = -1  # an iterator that has ended sees no event pushed later
            return False
        self._num_closed += len(self._open)
        self._open_number = heappop(self._numbers)
        self._open = self.buckets.pop(self._open_number)
        self._open.sort()
        self.left = iter(self._open)
        return True

    def forget_taken(self) -> None:
        """Let go of the events of the open bucket that have run."""
        place = self._place
        self._num_closed += place
        del self._open[:place]
        self.left = iter(self._open)

    def has_before(self, time_ps: int, phase: int) -> bool:
        """Whether an event of the open bucket comes before this phase of this time."""
        place = self._place
        return place < len(self._open) and self._open[place][:2] < (time_ps, phase)

    def discard(self, event: Event) -> None:
        """Forget an event unless it has run."""
        number = event[0] >> BUCKET_SHIFT
        if number == self._open_number:
            if event in self._open[self._place :]:
                del self._open[self._open.index(event, self._place)]
        elif event in self.buckets.get(number, ()):
            self.buckets[number].remove(event)
            if not self.buckets[number]:
                del self.buckets[number]
                self._numbers.remove(number)
                heapify(self._numbers)

    @property
    def _place(self) -> int:
        """Of the next event in the open bucket."""
        return len(self._open) - length_hint(self.left)
