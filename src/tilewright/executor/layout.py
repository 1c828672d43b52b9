"""How elements lie in memory: segments of neighbouring bytes, in rows; halves of bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tilewright.executor.order import Span
from tilewright.language.affine import Affine, Box
from tilewright.language.dtype import DType, int4

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The bytes of an access in the order of their addresses, and which element is where.

    The elements inside the box form an array ``extents`` in the order of memory, outermost first;
    ``axes`` are its axes in the block. Axes that all places share (stride 0) are left out.
    """

    segment_bytes: int
    rows: tuple[Span, ...]  # from the base of the access on
    extents: tuple[int, ...]
    axes: tuple[int, ...]
    flipped: tuple[int, ...]  # axes of the block whose stride is negative
    box: Box
    num_segments: int
    num_bytes: int

    def gather(self, data: Bytes, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The elements of the box as a block's axes have them, from the bytes in memory order."""
        elements = data.reshape(-1).view(dtype).reshape(self.extents)
        order = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        block = elements.transpose(order)
        spread = [1] * len(self.box.shape)
        for axis in self.axes:
            spread[axis] = self.box.high[axis] - self.box.low[axis]
        block = block.reshape(spread)
        for axis in self.flipped:
            block = np.flip(block, axis)
        extents = tuple(map(int.__sub__, self.box.high, self.box.low))
        return block if tuple(spread) == extents else np.broadcast_to(block, extents)

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
    inside, axes = tuple(dim[1] for dim in dims), tuple(dim[2] for dim in dims)
    count = sum(row.num_segments for row in rows)
    num_bytes = count * segment_bytes
    return Layout(segment_bytes, rows, inside, axes, tuple(flipped), box, count, num_bytes)


def _rows(offset: int, outer: list[tuple[int, int, int]], segment_bytes: int) -> Iterator[Span]:
    if not outer:
        yield Span(offset, 1, segment_bytes, segment_bytes)
        return
    row_stride, num_segments, _ = outer[-1]
    for places in product(*(range(extent) for _, extent, _ in outer[:-1])):
        start = sum(place * dim[0] for place, dim in zip(places, outer[:-1], strict=True))
        yield Span(offset + start, num_segments, segment_bytes, row_stride)


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


Addresses = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class PackedLayout:
    """Whole bytes that hold the halves of an access, and which half is whose.

    ``places`` has for each element of the box the half among all halves of the bytes.
    """

    segment_bytes: int
    num_segments: int
    box: Box
    places: np.ndarray[Any, np.dtype[np.intp]]

    @property
    def num_bytes(self) -> int:
        return self.segment_bytes * self.num_segments

    def gather(self, data: Bytes, _: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The elements of the box, from the bytes in memory order."""
        return int4_of_halves(halves_of_bytes(data)[self.places])

    def merge(self, data: Bytes, elements: np.ndarray[Any, Any]) -> Bytes:
        """The bytes with the elements in their halves; the others stay what they are."""
        halves = halves_of_bytes(data)
        halves[self.places.reshape(-1)] = halves_of_int4(elements).reshape(-1)
        return packed_halves(halves).reshape(data.shape)


def aligned_spans(base: int, layout: Layout) -> list[Span] | None:
    """Where segments of halves lie, if all of them are whole bytes."""
    if layout.segment_bytes % 2:
        return None
    spans = []
    for row in layout.rows:
        if (base + row.address) % 2 or (row.num_segments > 1 and row.stride_bytes % 2):
            return None
        start, stride_bytes = (base + row.address) // 2, row.stride_bytes // 2
        spans.append(Span(start, row.num_segments, layout.segment_bytes // 2, stride_bytes))
    return spans


def packed_layout(layout: Layout) -> PackedLayout:
    """Of segments that are whole bytes."""
    halves = np.arange(layout.num_bytes, dtype=np.intp)
    places = layout.gather(halves.view(np.uint8), halves.dtype)
    return PackedLayout(layout.segment_bytes // 2, layout.num_segments, layout.box, places)


def listed_halves(addresses: Addresses, box: Box) -> tuple[Addresses, PackedLayout]:
    """The bytes that hold halves anywhere, each once and in order, as one long segment."""
    found, inverse = np.unique(addresses >> 1, return_inverse=True)
    places = 2 * inverse.reshape(addresses.shape) + (addresses & 1)
    return found, PackedLayout(found.size, 1, box, places.astype(np.intp))


def halves_of_bytes(data: Bytes) -> Bytes:
    """The halves of bytes, each as a byte from 0 to 15."""
    flat = data.reshape(-1)
    halves = np.empty(2 * flat.size, np.uint8)
    halves[0::2] = flat & 15
    halves[1::2] = flat >> 4
    return halves


def item_bits(dtype: DType) -> int:
    """Return the bits that an element has in memory."""
    return dtype.bits if dtype is int4 else 8 * dtype.storage.itemsize


def elements_of_bytes(data: Bytes, dtype: DType, count: int) -> np.ndarray[Any, Any]:
    """The first elements that bytes hold, as memory has them."""
    if dtype is not int4:
        return data.reshape(-1).view(dtype.storage)[:count]
    return int4_of_halves(halves_of_bytes(data)[:count])


def int4_of_halves(halves: Bytes) -> np.ndarray[Any, Any]:
    """As signed elements, in two's complement."""
    signed = (halves << 4).view(np.int8) >> 4
    return signed.astype(int4.storage)


def halves_of_int4(elements: np.ndarray[Any, Any]) -> Bytes:
    """The reverse."""
    return elements.astype(np.int8).view(np.uint8) & np.uint8(15)


def packed_halves(halves: Bytes) -> Bytes:
    """The bytes of an even number of halves."""
    return halves[0::2] | (halves[1::2] << np.uint8(4))


def bytes_of_elements(elements: np.ndarray[Any, Any], dtype: DType) -> Bytes:
    """As memory has them; of an odd number of halves the last byte's upper one is zero.

    >>> bytes_of_elements(np.array([1, -1, 7], int4.storage), int4).tolist()
    [241, 7]
    """
    flat = np.ascontiguousarray(elements).reshape(-1)
    if dtype is not int4:
        return flat.view(np.uint8)
    halves = np.zeros(flat.size + flat.size % 2, np.uint8)
    halves[: flat.size] = halves_of_int4(flat)
    return packed_halves(halves)
