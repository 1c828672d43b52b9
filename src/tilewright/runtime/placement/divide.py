"""Arithmetic of dividing: boxes of indices by an axis, bytes by blocks. Knows no machine."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import assert_never

from tilewright.memory.runs import Repeat, Runs, num_bytes_of, repeats_of
from tilewright.runtime.placement.policy import Interleave, Layout, LayoutWord, Split

MAX_EXPLICIT = 4096  # ranges and blocks that are told one by one

Box = tuple[range, ...]
"""Indices of an axis each."""


def deal_blocks(runs: Sequence[range], block_bytes: int, num_units: int) -> list[Sequence[range]]:
    """Deal the bytes of all runs, one after the other, a block to each unit in turn.

    Each unit gets the fewest ranges, in order. No two runs touch.

    >>> deal_blocks([range(100, 110)], block_bytes=4, num_units=2)
    [(range(100, 104), range(108, 110)), (range(104, 108),)]
    """
    if num_units == 1:
        return [runs]
    if len(runs) + num_bytes_of(runs) // block_bytes <= MAX_EXPLICIT:
        return list(map(tuple, _deal(runs, block_bytes, num_units)))
    hands: list[list[Repeat]] = [[] for _ in range(num_units)]
    round_bytes = block_bytes * num_units
    repeats = deque(each for repeat in repeats_of(runs) for each in _cut(repeat, round_bytes))
    while repeats and (times := _times_together(repeats[0], round_bytes)) is not None:
        repeat = repeats.popleft()
        whole = repeat.times // times
        dealt = _deal(Runs([repeat._replace(times=times)]), block_bytes, num_units)
        for hand, pattern in zip(hands, dealt, strict=True):
            if pattern:
                hand.append(Repeat(repeat.base, times * repeat.period, whole, tuple(pattern)))
        left = repeat.shifted(whole * times * repeat.period)
        if repeat.times % times:
            repeats.appendleft(left._replace(times=repeat.times % times))
            break  # it ends inside a round
    for hand, tail in zip(hands, _deal(Runs(repeats), block_bytes, num_units), strict=True):
        hand.extend(repeats_of(tail))
    return [Runs(hand) for hand in hands]


def _cut(repeat: Repeat, round_bytes: int) -> Iterable[Repeat]:
    """Return one long range as ranges of a whole round, and the rest; others as they are."""
    first = repeat.pattern[0]
    times = len(first) // round_bytes
    if repeat.num_ranges > 1 or not times:
        return (repeat,)
    middle = first.start + times * round_bytes
    whole = range(first.start, first.start + round_bytes)
    found = [Repeat(first.start, round_bytes, times, (whole,))]
    if middle < first.stop:
        found.append(Repeat(middle, first.stop - middle, 1, (range(middle, first.stop),)))
    return found


def _times_together(repeat: Repeat, round_bytes: int) -> int | None:
    """Return how many repetitions have whole rounds: then all is the same again.

    None if there are not twice as many of them.
    """
    own_bytes = repeat.num_bytes // repeat.times
    times = round_bytes // gcd(own_bytes, round_bytes)
    return times if repeat.times >= 2 * times else None


def _deal(runs: Iterable[range], block_bytes: int, num_units: int) -> list[list[range]]:
    """Deal each block by itself."""
    dealt: list[list[range]] = [[] for _ in range(num_units)]
    done = 0
    for run in runs:
        start = run.start
        while start < run.stop:
            block, inside = divmod(done, block_bytes)
            size = min(run.stop - start, block_bytes - inside)
            hand = dealt[block % num_units]
            first = hand.pop().start if hand and hand[-1].stop == start else start
            hand.append(range(first, start + size))
            start += size
            done += size
    return dealt


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a tensor: a box, and which of its packed bytes."""

    box: Box
    runs: Sequence[range] | None = None  # None: all of them

    def byte_runs(self, bits: int) -> Sequence[range]:
        """Bytes of the box, packed in row-major order, that belong to the region."""
        if self.runs is not None:
            return self.runs
        num_bytes = box_num_bytes(self.box, bits)
        return (range(num_bytes),) if num_bytes else ()


def box_num_bytes(box: Box, bits: int) -> int:
    """Of its packed elements; the last byte may be part empty."""
    return -(-prod(map(len, box)) * bits // 8)


def divide(region: Region, layout: Layout, num_units: int, *, bits: int) -> tuple[Region, ...]:
    """What each unit gets; axes of the box are those of the layout."""
    match layout:
        case LayoutWord.REPLICATE:
            return (region,) * num_units
        case LayoutWord.ROW_WISE:
            return _split(region.box, 0, num_units)
        case LayoutWord.COLUMN_WISE:
            return _split(region.box, -1, num_units)
        case Split(axis=axis):
            return _split(region.box, axis, num_units)
        case Interleave(num_bytes=block_bytes):
            dealt = deal_blocks(region.byte_runs(bits), block_bytes, num_units)
            return tuple(Region(region.box, runs) for runs in dealt)
        case _:
            assert_never(layout)


def split_evenly(extent: range, num_parts: int) -> list[range]:
    """Neighbouring parts, of which the first ones are one longer where it is uneven.

    >>> split_evenly(range(10, 20), 3)
    [range(10, 14), range(14, 17), range(17, 20)]
    """
    size, longer = divmod(len(extent), num_parts)
    starts = [extent.start + size * part + min(part, longer) for part in range(num_parts + 1)]
    return [range(starts[part], starts[part + 1]) for part in range(num_parts)]


def _split(box: Box, axis: int, num_units: int) -> tuple[Region, ...]:
    place = axis % len(box)
    parts = split_evenly(box[place], num_units)
    return tuple(Region((*box[:place], part, *box[place + 1 :])) for part in parts)


def is_contiguous(box: Box, shape: Sequence[int]) -> bool:
    """Whether its elements are neighbours in the row-major whole."""
    is_partial = False
    for extent, size in zip(reversed(box), reversed(shape), strict=True):
        if is_partial and len(extent) != 1:
            return False
        is_partial = is_partial or len(extent) != size
    return True
