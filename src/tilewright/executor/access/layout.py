"""How a block of addresses lies in memory: segments of neighbouring bytes, in rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tilewright.language.affine import Affine, Box

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Row:
    """Segments at equal distances, the first at ``offset`` bytes from the base of the access."""

    offset: int
    num_segments: int
    stride_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The bytes of an access in the order of their addresses, and which element is where.

    The elements inside the box form an array ``extents`` in the order of memory, outermost first;
    ``axes`` are its axes in the block. Axes that all places share (stride 0) are left out.
    """

    segment_bytes: int
    rows: tuple[Row, ...]
    extents: tuple[int, ...]
    axes: tuple[int, ...]
    flipped: tuple[int, ...]  # axes of the block whose stride is negative
    box: Box
    num_segments: int
    num_bytes: int

    def gather(self, data: Bytes, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The elements of the box as a block's axes have them, from the bytes in memory order."""
        elements = data.reshape(-1).view(dtype).reshape(self.extents)
        return self._to_block(elements)

    def scatter(self, elements: np.ndarray[Any, Any]) -> Bytes:
        """The bytes in memory order, from the elements of the box."""
        shape = elements.shape
        for axis in self.flipped:
            elements = np.flip(elements, axis)
        others = [axis for axis in range(len(shape)) if axis not in self.axes]
        ordered = elements.transpose(*self.axes, *others)
        # places that share an address hold the last value written in the block's order
        for _ in others:
            ordered = ordered[..., -1]
        data = np.ascontiguousarray(ordered).view(np.uint8)
        return data.reshape(-1, self.segment_bytes)

    def _to_block(self, elements: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rank = len(self.box.shape)
        order = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        block = elements.transpose(order)
        spread = [1] * rank
        for axis in self.axes:
            spread[axis] = self.box.high[axis] - self.box.low[axis]
        block = block.reshape(spread)
        for axis in self.flipped:
            block = np.flip(block, axis)
        extents = tuple(map(int.__sub__, self.box.high, self.box.low))
        return block if tuple(spread) == extents else np.broadcast_to(block, extents)


def layout_of(addresses: Affine, box: Box, item_bytes: int) -> Layout:
    """Of the places inside a box that is not empty; ``addresses.base`` does not matter."""
    return _layout(addresses.strides, box, item_bytes)


@lru_cache(4096)
def _layout(strides: tuple[int, ...], box: Box, item_bytes: int) -> Layout:
    extents = tuple(map(int.__sub__, box.high, box.low))
    offset = sum(map(int.__mul__, strides, box.low))
    flipped = []
    dims: list[tuple[int, int, int]] = []
    for axis, (stride, extent) in enumerate(zip(strides, extents, strict=True)):
        if not stride or extent == 1:
            continue
        if stride < 0:
            offset += stride * (extent - 1)
            flipped.append(axis)
        dims.append((abs(stride), extent, axis))
    dims.sort(key=lambda dim: -dim[0])
    segment_bytes, inner = item_bytes, len(dims)
    while inner and dims[inner - 1][0] == segment_bytes:
        inner -= 1
        segment_bytes *= dims[inner][1]
    rows = tuple(_rows(offset, dims[:inner], segment_bytes))
    num_segments = sum(row.num_segments for row in rows)
    return Layout(
        segment_bytes,
        rows,
        tuple(extent for _, extent, _ in dims),
        tuple(axis for _, _, axis in dims),
        tuple(flipped),
        box,
        num_segments,
        num_segments * segment_bytes,
    )


def _rows(offset: int, outer: list[tuple[int, int, int]], segment_bytes: int) -> Iterator[Row]:
    if not outer:
        yield Row(offset, 1, segment_bytes)
        return
    row_stride, num_segments, _ = outer[-1]
    for places in product(*(range(extent) for _, extent, _ in outer[:-1])):
        start = sum(place * dim[0] for place, dim in zip(places, outer[:-1], strict=True))
        yield Row(offset + start, num_segments, row_stride)


def runs_of_addresses(
    addresses: np.ndarray[Any, np.dtype[np.int64]], item_bytes: int
) -> list[tuple[int, int, int]]:
    """(place, address, bytes) of the runs of neighbours among single elements.

    >>> runs_of_addresses(np.array([64, 68, 16, 20, 24]), 4)
    [(0, 64, 8), (2, 16, 12)]
    """
    if not addresses.size:
        return []
    breaks = np.flatnonzero(np.diff(addresses) != item_bytes) + 1
    starts = [0, *breaks.tolist()]
    ends = [*starts[1:], addresses.size]
    return [
        (start, int(addresses[start]), (end - start) * item_bytes)
        for start, end in zip(starts, ends, strict=True)
    ]
