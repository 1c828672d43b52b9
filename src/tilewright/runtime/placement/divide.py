"""Arithmetic of dividing: boxes of indices by an axis, bytes by blocks. Knows no machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never

from tilewright.runtime.placement.blocks import deal_blocks
from tilewright.runtime.placement.policy import Interleave, Layout, LayoutWord, Split

Box = tuple[range, ...]
"""Indices of an axis each."""


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
