"""The table that shows where a tensor lies."""

from collections.abc import Sequence
from itertools import product

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.runs import num_bytes_of
from tilewright.runtime.placement.policy import Box

MAX_RANGES = 2  # blocks of a shard that are shown

Line = tuple[Sequence[PeCoord], Box, bool, Sequence[range]]
"""Replicas, their box, whether they have all of it, their bytes."""


def placement_text(title: str, lines: Sequence[Line]) -> str:
    """One line for each shard, with all PEs that have a copy of it."""
    rows = [("PEs", "indices", "offset", "bytes")]
    for homes, box, is_whole, ranges in lines:
        size = str(num_bytes_of(ranges))
        indices = _box_text(box) if is_whole else f"blocks of {_box_text(box)}"
        rows.append((homes_text(homes), indices, _offset_text(ranges), size))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [
        f"{pes:<{widths[0]}}  {box:<{widths[1]}}  {offset:>{widths[2]}}  {size:>{widths[3]}}"
        for pes, box, offset, size in rows
    ]
    return "\n".join([title, *table])


def homes_text(homes: Sequence[PeCoord]) -> str:
    """Replicas over whole levels are told by the numbers of each level."""
    sips = sorted({home.sip for home in homes})
    cubes = sorted({home.cube for home in homes})
    pes = sorted({home.pe for home in homes})
    if homes and set(homes) == {PeCoord(*place) for place in product(sips, cubes, pes)}:
        return f"sip{_numbers(sips)}.cube{_numbers(cubes)}.pe{_numbers(pes)}"
    return ", ".join(map(place_name, homes))


def _numbers(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return str(first)
    if last - first == len(numbers) - 1:
        return f"{first}-{last}"
    return "{" + ",".join(map(str, numbers)) + "}"


def _box_text(box: Box) -> str:
    return "[" + ", ".join(f"{extent.start}:{extent.stop}" for extent in box) + "]"


def _offset_text(ranges: Sequence[range]) -> str:
    shown = [str(run.start) for run in ranges[:MAX_RANGES]]
    left = len(ranges) - len(shown)
    return ", ".join([*shown, *([f"{left} more"] if left else [])])
