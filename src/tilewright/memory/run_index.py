"""Which of many ranges has a byte, where ranges may repeat at equal distances."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class Extent(NamedTuple):
    """Neighbouring bytes, and as many again ``times`` times at equal distances."""

    start: int
    num_bytes: int
    times: int = 1
    step: int = 0  # from one start to the next

    @property
    def end(self) -> int:
        """The byte behind the last of all."""
        return self.start + (self.times - 1) * self.step + self.num_bytes

    def single(self) -> Iterator["Extent"]:
        """Yield each range by itself."""
        for repetition in range(self.times):
            yield Extent(self.start + repetition * self.step, self.num_bytes)


class Hit(NamedTuple, Generic[Item]):
    """A range that has the byte that was asked for, and those whose range it is.

    Each owner is an item, and which repetition of its extent the range is.
    """

    low: int
    high: int
    owners: Sequence[tuple[Item, int]]

    @property
    def items(self) -> list[Item]:
        return [item for item, _ in self.owners]


class _Cluster(NamedTuple, Generic[Item]):
    """Extents that repeat together: each repetition has them all, in order."""

    low: int
    high: int
    times: int
    step: int
    starts: list[int]
    ends: list[int]
    owners: list[list[tuple[Item, int]]]  # with the repetition that the first range is

    def hit(self, address: int) -> Hit[Item] | None:
        repetition = (address - self.low) // self.step if self.step else 0
        by = repetition * self.step
        place = bisect_right(self.starts, address - by) - 1
        if place < 0 or address - by >= self.ends[place] or repetition >= self.times:
            return None
        low, high = self.starts[place] + by, self.ends[place] + by
        if not repetition:
            return Hit(low, high, self.owners[place])
        return Hit(low, high, [(item, first + repetition) for item, first in self.owners[place]])

    def next_start(self, address: int) -> int | None:
        """The first start behind an address, if it is not in a later cluster."""
        repetition = (address - self.low) // self.step if self.step else 0
        by = repetition * self.step
        place = bisect_right(self.starts, address - by)
        if place < len(self.starts):
            return self.starts[place] + by if repetition < self.times else None
        return self.low + by + self.step if repetition + 1 < self.times else None


class RunIndex(Generic[Item]):
    """Ranges and whose they are. Equal ranges may have several items; others do not overlap.

    >>> index = RunIndex([(Extent(0, 4, 1000, 8), "even"), (Extent(4, 4, 1000, 8), "odd")])
    >>> index.at(4003)
    Hit(low=4000, high=4004, owners=[('even', 500)])
    >>> index.at(8000) is None
    True
    """

    def __init__(self, entries: Iterable[tuple[Extent, Item]]) -> None:
        ordered = [(extent, (item, 0)) for extent, item in sorted(entries, key=_extent_of)]
        self._clusters = _clustered(ordered)
        if any(after.low < before.high for before, after in pairwise(self._clusters)):
            # extents that do not repeat together, one between the others
            single = [
                (each, (item, place))
                for extent, (item, _) in ordered
                for place, each in enumerate(extent.single())
            ]
            self._clusters = _clustered(sorted(single, key=_extent_of))
        self._lows = [cluster.low for cluster in self._clusters]

    def overlap(self) -> tuple[Extent, Extent] | None:
        """Return two ranges that have bytes in common and are not equal; None: there are none."""
        before = Extent(-1, 0)
        for cluster in self._clusters:
            for start, end in zip(cluster.starts, cluster.ends, strict=True):
                extent = Extent(start, end - start)
                if start < before.end:
                    return before, extent
                before = extent
            before = Extent(before.start, cluster.high - before.start)
        return None

    def at(self, address: int) -> Hit[Item] | None:
        """Return the range that has a byte; None if there is none."""
        place = bisect_right(self._lows, address) - 1
        return self._clusters[place].hit(address) if place >= 0 else None

    def next_start(self, address: int) -> int | None:
        """Return where the next range behind a byte begins; None if there is none."""
        place = bisect_right(self._lows, address) - 1
        found = self._clusters[place].next_start(address) if place >= 0 else None
        if found is None and place + 1 < len(self._clusters):
            found = self._clusters[place + 1].low
        return found

    def hits(self, span: range) -> Iterator[Hit[Item]]:
        """Yield the ranges that have bytes of a span, in order."""
        address: int | None = span.start
        while address is not None and address < span.stop:
            hit = self.at(address)
            if hit is not None:
                yield hit
            address = self.next_start(address) if hit is None else hit.high

    def missing(self, span: range) -> Iterator[range]:
        """Yield the bytes of a span that no range has, in order."""
        start = span.start
        for hit in self.hits(span):
            if start < hit.low:
                yield range(start, hit.low)
            start = hit.high
        if start < span.stop:
            yield range(start, span.stop)


def _extent_of(entry: tuple[Extent, object]) -> Extent:
    return entry[0]


def _clustered(entries: Iterable[tuple[Extent, tuple[Item, int]]]) -> list[_Cluster[Item]]:
    """Return extents, which are in order, by those that repeat together."""
    clusters: list[_Cluster[Item]] = []
    for extent, owner in entries:
        start, end = extent.start, extent.start + extent.num_bytes
        last = clusters[-1] if clusters else None
        if last is not None and (last.times, last.step) == (extent.times, extent.step):
            if (last.starts[-1], last.ends[-1]) == (start, end):
                last.owners[-1].append(owner)
                continue
            if extent.times > 1 and end <= last.low + extent.step:
                last.starts.append(start)
                last.ends.append(end)
                last.owners.append([owner])
                clusters[-1] = last._replace(high=extent.end)
                continue
        new = _Cluster(start, extent.end, extent.times, extent.step, [start], [end], [[owner]])
        clusters.append(new)
    return clusters
