"""Ranges of bytes in order, of which many may be the same at equal distances.

A tensor of a terabyte that is dealt out page by page has millions of ranges, of few kinds.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Generic, NamedTuple, Self, TypeVar, overload

Item = TypeVar("Item")


class Extent(NamedTuple):
    """Neighbouring bytes, and as many again ``times`` times at equal distances."""

    first: int
    num_bytes: int  # of one range
    times: int = 1
    step: int = 0  # from one range to the next

    @property
    def end(self) -> int:
        """The byte behind the last of all."""
        return self.first + (self.times - 1) * self.step + self.num_bytes

    def single(self) -> Iterator[Self]:
        """Yield each range by itself, in order."""
        for repetition in range(self.times):
            first = self.first + repetition * self.step
            yield self._replace(first=first, times=1, step=0)


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
        ordered = [(extent, (item, 0)) for extent, item in sorted(entries, key=itemgetter(0))]
        self._clusters = _clustered(ordered)
        if any(after.low < before.high for before, after in pairwise(self._clusters)):
            # extents that do not repeat together, one between the others
            single = [
                (each, (item, place))
                for extent, (item, _) in ordered
                for place, each in enumerate(extent.single())
            ]
            self._clusters = _clustered(sorted(single, key=itemgetter(0)))
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
            before = Extent(before.first, cluster.high - before.first)
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


def _clustered(entries: Iterable[tuple[Extent, tuple[Item, int]]]) -> list[_Cluster[Item]]:
    """Return extents, which are in order, by those that repeat together."""
    clusters: list[_Cluster[Item]] = []
    for extent, owner in entries:
        start, end = extent.first, extent.first + extent.num_bytes
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


class Repeat(NamedTuple):
    """A pattern of ranges, and the same again at equal distances.

    The ranges of repetition i lie from ``base + i * period`` on, before the next repetition.
    """

    base: int
    period: int
    times: int
    pattern: tuple[range, ...]  # of the first repetition, in order

    @property
    def num_ranges(self) -> int:
        return self.times * len(self.pattern)

    @property
    def num_bytes(self) -> int:
        return self.times * sum(map(len, self.pattern))

    def shifted(self, by: int) -> "Repeat":
        """Return the same ranges further on."""
        moved = tuple(range(each.start + by, each.stop + by) for each in self.pattern)
        return Repeat(self.base + by, self.period, self.times, moved)

    def __str__(self) -> str:
        return f"{self.times} times {len(self.pattern)} ranges, {self.period} bytes apart"


class Runs(Sequence[range]):
    """Many ranges in order, as few patterns. Nothing is made of a range that nobody asks for.

    >>> runs = Runs([Repeat(0, 16, 1000, (range(0, 4), range(8, 12))), Repeat(16000, 4, 1, (
    ...     range(16000, 16002),))])
    >>> len(runs), runs[1], runs[2], runs[-1], runs.num_bytes
    (2001, range(8, 12), range(16, 20), range(16000, 16002), 8002)
    """

    __slots__ = ("repeats",)

    def __init__(self, repeats: Sequence[Repeat]) -> None:
        self.repeats = tuple(repeats)

    def __len__(self) -> int:
        return sum(each.num_ranges for each in self.repeats)

    @property
    def num_bytes(self) -> int:
        return sum(each.num_bytes for each in self.repeats)

    @overload
    def __getitem__(self, index: int) -> range: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[range, ...]: ...
    def __getitem__(self, index: int | slice) -> range | tuple[range, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        left = index if index >= 0 else index + len(self)
        for repeat in self.repeats:
            if 0 <= left < repeat.num_ranges:
                repetition, place = divmod(left, len(repeat.pattern))
                first, by = repeat.pattern[place], repetition * repeat.period
                return range(first.start + by, first.stop + by)
            left -= repeat.num_ranges
        raise IndexError(index)

    def __iter__(self) -> Iterator[range]:
        for repeat in self.repeats:
            for by in range(0, repeat.times * repeat.period, repeat.period):
                for each in repeat.pattern:
                    yield range(each.start + by, each.stop + by)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runs) and self.repeats == other.repeats

    def __hash__(self) -> int:
        return hash(self.repeats)

    def __repr__(self) -> str:
        return f"<Runs: {'; '.join(map(str, self.repeats))}>"


def repeats_of(ranges: Sequence[range]) -> tuple[Repeat, ...]:
    """Return ranges as patterns: those of ``Runs``, else one pattern that does not repeat."""
    if isinstance(ranges, Runs):
        return ranges.repeats
    if not ranges:
        return ()
    base = ranges[0].start
    return (Repeat(base, ranges[-1].stop - base, 1, tuple(ranges)),)


def num_bytes_of(ranges: Sequence[range]) -> int:
    """Return how many bytes ranges have together."""
    return ranges.num_bytes if isinstance(ranges, Runs) else sum(map(len, ranges))


def shifted(ranges: Sequence[range], by: int) -> Sequence[range]:
    """Return the same ranges further on."""
    if isinstance(ranges, Runs):
        return Runs([repeat.shifted(by) for repeat in ranges.repeats])
    return tuple(range(each.start + by, each.stop + by) for each in ranges)


def extents_of(ranges: Sequence[range]) -> Iterator[Extent]:
    """Yield ranges as extents: those of ``Runs`` that repeat as one each."""
    for repeat in repeats_of(ranges):
        step = repeat.period if repeat.times > 1 else 0
        for each in repeat.pattern:
            yield Extent(each.start, len(each), repeat.times, step)


def is_aligned(extents: Iterable[Extent], unit_bytes: int, end: int) -> bool:
    """Return whether ranges begin and end at multiples of a unit; one may end at ``end``."""
    return not any(
        extent.first % unit_bytes
        or extent.step % unit_bytes
        or (extent.num_bytes % unit_bytes and (extent.times > 1 or extent.end != end))
        for extent in extents
    )
