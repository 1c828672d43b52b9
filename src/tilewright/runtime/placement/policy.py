"""The division of a tensor: what a user says about it, what each unit gets.

Mistakes that need no shape are found here, as the policy is written; the others in ``placement``.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import gcd, prod
from typing import NamedTuple, TypeVar, assert_never

from tilewright.errors import PlacementError, meant
from tilewright.memory.address import MemoryKind
from tilewright.memory.runs import Repeat, Runs, num_bytes_of, repeats_of


class LayoutWord(StrEnum):
    """The layouts that have a word. A tensor of less than two axes is taken as (1, n) or (1, 1)."""

    REPLICATE = "replicate"  # every unit has all of it
    ROW_WISE = "row_wise"  # the first axis is split
    COLUMN_WISE = "column_wise"  # the last axis is split


@dataclass(frozen=True, slots=True)
class Split:
    """The units have neighbouring parts of an axis, the first ones one more where it is uneven."""

    axis: int  # a negative one counts from the end

    def __post_init__(self) -> None:
        if type(self.axis) is not int:
            fix = "name one axis, like Split(0) or Split(-1)"
            raise PlacementError("Split", f"the axis {self.axis!r}", "an int", fix)


@dataclass(frozen=True, slots=True)
class Interleave:
    """Blocks of so many bytes go to the units in turn. A block is whole pages."""

    num_bytes: int

    def __post_init__(self) -> None:
        if type(self.num_bytes) is not int or self.num_bytes < 1:
            found, expected = f"blocks of {self.num_bytes!r} bytes", "an int of at least 1"
            raise PlacementError("Interleave", found, expected, "give a multiple of the page")


Layout = LayoutWord | Split | Interleave


class Level(NamedTuple):
    """One level of a policy, and how many of its units take part."""

    name: str
    layout: Layout
    num_units: int | None  # None: all there are

    @property
    def where(self) -> str:
        return f"DPPolicy {self.name}"


@dataclass(frozen=True, slots=True)
class DPPolicy:
    """How SIPs divide a tensor, then the cubes of a SIP its part, then the PEs of a cube theirs.

    Each level is ``"replicate"``, ``"row_wise"``, ``"column_wise"``, ``Split(axis)`` or
    ``Interleave(num_bytes)``; the counts let only the first so many units take part. A PE's part
    lies in its slice of the HBM; with ``memory`` it lies in its TCM, or in the SRAM of its cube,
    where PEs that have the same part share one copy.

    >>> policy = DPPolicy(cube="row_wise", pe=Split(-1), num_cubes=4)
    >>> policy.cube == "row_wise", [level.num_units for level in policy.levels]
    (True, [None, 4, None])
    >>> DPPolicy(pe="rowwise")
    Traceback (most recent call last):
    tilewright.errors.PlacementError: DPPolicy pe: found 'rowwise', expected 'replicate', \
'row_wise', 'column_wise', Split(axis) or Interleave(num_bytes); did you mean 'row_wise'?
    """

    sip: Layout | str = LayoutWord.REPLICATE
    cube: Layout | str = LayoutWord.REPLICATE
    pe: Layout | str = LayoutWord.REPLICATE
    num_sips: int | None = None
    num_cubes: int | None = None
    num_pes: int | None = None
    memory: MemoryKind | str = MemoryKind.HBM

    def __post_init__(self) -> None:
        for level in self.levels:
            object.__setattr__(self, level.name, level.layout)
            count = level.num_units
            if count is not None and (type(count) is not int or count < 1):
                where, expected = (
                    f"DPPolicy num_{level.name}s",
                    "an int of at least 1, or None for all",
                )
                raise PlacementError(where, repr(count), expected, "correct the count")
        _check_nesting(self.levels)
        object.__setattr__(self, "memory", _parse_word("memory", self.memory, MemoryKind))

    @property
    def levels(self) -> tuple[Level, Level, Level]:
        """From the outside in."""
        return (
            Level("sip", _parse_layout("sip", self.sip), self.num_sips),
            Level("cube", _parse_layout("cube", self.cube), self.num_cubes),
            Level("pe", _parse_layout("pe", self.pe), self.num_pes),
        )


_Word = TypeVar("_Word", bound=StrEnum)


def _parse_layout(level: str, value: object) -> Layout:
    if isinstance(value, Split | Interleave):
        return value
    return _parse_word(level, value, LayoutWord, ", Split(axis) or Interleave(num_bytes)")


def _parse_word(field: str, value: object, words: type[_Word], others: str = "") -> _Word:
    """Return the member that a value names; ``others`` is what else may be said."""
    known = [word.value for word in words]
    if isinstance(value, str) and value in known:
        return words(value)
    fix = meant(value[:80] if isinstance(value, str) else "", known, "write one of these")
    expected = ", ".join(map(repr, known)) + others
    raise PlacementError(f"DPPolicy {field}", repr(value), expected, fix)


def _check_nesting(levels: tuple[Level, ...]) -> None:
    """Blocks of bytes have no axes, so nothing below them is split by one."""
    interleaved: Level | None = None
    for level in levels:
        if isinstance(level.layout, Interleave):
            interleaved = interleaved or level
        elif interleaved is not None and level.layout != LayoutWord.REPLICATE:
            found = f"{level.layout!r} below {interleaved.layout!r} of the {interleaved.name} level"
            expected = "'replicate' or Interleave(num_bytes): blocks of bytes have no axes"
            raise PlacementError(level.where, found, expected, "split above, interleave below")


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


def strides_of(shape: Sequence[int]) -> list[int]:
    """Return how many elements of a row-major array each step along an axis passes."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def is_contiguous(box: Box, shape: Sequence[int]) -> bool:
    """Whether its elements are neighbours in the row-major whole."""
    is_partial = False
    for extent, size in zip(reversed(box), reversed(shape), strict=True):
        if is_partial and len(extent) != 1:
            return False
        is_partial = is_partial or len(extent) != size
    return True
