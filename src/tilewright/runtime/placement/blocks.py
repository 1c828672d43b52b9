"""Blocks of bytes, dealt to units in turn; of a large tensor as patterns that repeat."""

from collections import deque
from collections.abc import Iterable, Sequence
from math import gcd

from tilewright.memory.runs import Repeat, Runs, num_bytes_of, repeats_of

MAX_EXPLICIT = 4096  # ranges and blocks that are told one by one


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
