"""What a user says about the division of a tensor among SIPs, cubes and PEs.

Mistakes that need no shape are found here, as the policy is written; the others in ``placement``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from tilewright.errors import PlacementError, meant
from tilewright.memory.address import MemoryKind


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
            _check_count(level)
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


def _check_count(level: Level) -> None:
    count = level.num_units
    if count is not None and (type(count) is not int or count < 1):
        where, expected = f"DPPolicy num_{level.name}s", "an int of at least 1, or None for all"
        raise PlacementError(where, repr(count), expected, "correct the count")


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
