"""Ranges of bytes in order, of which many may be the same at equal distances.

A tensor of a terabyte that is dealt out page by page has millions of ranges, of few kinds.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from tilewright.memory.run_index import Extent


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

    def of(self, repetition: int) -> "Repeat":
        """Return one of the repetitions."""
        moved = self.shifted(repetition * self.period)
        return moved._replace(times=1)

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


def is_aligned(ranges: Sequence[range], unit_bytes: int, end: int) -> bool:
    """Return whether ranges begin and end at multiples of a unit; one may end at ``end``."""
    return not any(
        extent.start % unit_bytes
        or extent.step % unit_bytes
        or (extent.num_bytes % unit_bytes and (extent.times > 1 or extent.end != end))
        for extent in extents_of(ranges)
    )
