"""The events of the reference core that have not run yet."""

from bisect import insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from operator import length_hint
from typing import Any

Event = tuple[int, int, int, int, Any, int | None, int]
"""Time, phase, id, tie-breaker: the key; then what it is about.

For a packet that crosses a plain route the last two are its hop and the time at which its tail is
there; for all else None and 0.
"""

BUCKET_SHIFT = 10  # a bucket is about a nanosecond, less than most hops take


class _Buckets(dict[int, Any]):
    """Lists of events by time >> BUCKET_SHIFT; one that is asked for is there."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []  # of the lists, a heap

    def __missing__(self, number: int) -> list[Event]:
        heappush(self.numbers, number)
        bucket = self[number] = []
        return bucket


class _OpenBucket:
    """Sorted events of which some have run; stands in for their list among the buckets."""

    __slots__ = ("events", "left", "number")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.left: Iterator[Event] = iter(())
        self.number = -1

    @property
    def place(self) -> int:
        """Of the next event."""
        return len(self.events) - length_hint(self.left)

    def append(self, event: Event) -> None:
        """At its place among those that are left."""
        insort(self.events, event, len(self.events) - length_hint(self.left))


class EventQueue:
    """Events in the order of their keys.

    They lie in buckets by time, and a bucket is sorted when its turn comes: one sort of twenty
    events compares half as often as a heap does. What is pushed into the open bucket finds its
    place among those that are left.

    >>> queue = EventQueue()
    >>> queue.push((5, 2, 0, 7, "later", None, 0))
    >>> queue.push((5, 1, 3, 0, "first", None, 0))
    >>> queue.open()
    True
    >>> [event[4] for event in queue.opened.left]
    ['first', 'later']
    >>> queue.open(), bool(queue)
    (False, False)
    """

    __slots__ = ("buckets", "num_closed", "opened")

    def __init__(self) -> None:
        self.buckets = _Buckets()  # buckets[time >> BUCKET_SHIFT].append(event) is a push
        self.opened = _OpenBucket()
        self.num_closed = 0  # events that have run and are forgotten

    def __bool__(self) -> bool:
        return bool(self.buckets.numbers) or length_hint(self.opened.left) > 0

    def __iter__(self) -> Iterator[Event]:
        """In no particular order."""
        for bucket in self.buckets.values():
            if bucket is self.opened:
                yield from self.opened.events[self.opened.place :]
            else:
                yield from bucket

    @property
    def num_taken(self) -> int:
        return self.num_closed + self.opened.place

    def push(self, event: Event) -> None:
        self.buckets[event[0] >> BUCKET_SHIFT].append(event)

    def open(self) -> bool:
        """Whether events are left; if the open bucket has none, the next one is opened."""
        opened, buckets = self.opened, self.buckets
        if length_hint(opened.left):
            return True
        if opened.number in buckets:
            del buckets[opened.number]  # an iterator that has ended sees no event pushed later
            opened.number = -1
        if not buckets.numbers:
            return False
        self.num_closed += len(opened.events)
        opened.number = heappop(buckets.numbers)
        opened.events = buckets[opened.number]
        opened.events.sort()
        opened.left = iter(opened.events)
        buckets[opened.number] = opened
        return True

    def forget_taken(self) -> None:
        """Let go of the events of the open bucket that have run."""
        opened = self.opened
        place = opened.place
        self.num_closed += place
        del opened.events[:place]
        opened.left = iter(opened.events)

    def has_before(self, time_ps: int, phase: int) -> bool:
        """Whether an event of the open bucket comes before this phase of this time."""
        opened = self.opened
        place = opened.place
        return place < len(opened.events) and opened.events[place][:2] < (time_ps, phase)

    def discard(self, event: Event) -> None:
        """Forget an event unless it has run."""
        number = event[0] >> BUCKET_SHIFT
        bucket = self.buckets.get(number)
        if bucket is self.opened:
            events, place = self.opened.events, self.opened.place
            if event in events[place:]:
                del events[events.index(event, place)]
        elif bucket is not None and event in bucket:
            bucket.remove(event)
            if not bucket:
                del self.buckets[number]
                self.buckets.numbers.remove(number)
                heapify(self.buckets.numbers)
