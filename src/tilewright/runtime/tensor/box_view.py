"""A box of a tensor seen in one of its parts: the bytes from its first element to its last."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.executor.layout import bytes_of_elements, elements_of_bytes
from tilewright.language.dtype import DType
from tilewright.runtime.placement.divide import Box, is_contiguous
from tilewright.runtime.placement.placement import Part, Placement

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Window:
    """What a box and a part share."""

    part: Part
    dtype: DType
    inside: Box  # indices counted from the part's first
    index: tuple[slice, ...]  # of an array of the box

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.inside))

    @property
    def _strides(self) -> list[int]:
        shape = self.part.shape
        return [prod(shape[axis + 1 :]) for axis in range(len(shape))]

    @property
    def _elements(self) -> range:
        """From the first to the last, by their number in the part."""
        both = list(zip(self.inside, self._strides, strict=True))
        first = sum(extent.start * stride for extent, stride in both)
        last = sum((extent.stop - 1) * stride for extent, stride in both)
        return range(first, last + 1)

    @property
    def span(self) -> range:
        """Whole bytes of the virtual range."""
        elements, bits = self._elements, self.dtype.bits
        start, stop = elements.start * bits // 8, -(-elements.stop * bits // 8)
        return range(self.part.offset + start, self.part.offset + stop)

    @property
    def is_plain(self) -> bool:
        """Whether the span has no other elements, so that bytes can be written as they are."""
        if self.shape == self.part.shape:
            return True
        return self.dtype.bits >= 8 and is_contiguous(self.inside, self.part.shape)

    def elements(self, image: Bytes) -> Array:
        """All that the bytes of the span hold, also those outside the box."""
        return elements_of_bytes(image, self.dtype, image.size * 8 // self.dtype.bits)

    def view(self, elements: Array) -> Array:
        """The box among the elements of the span; the same memory."""
        offset = (self.span.start - self.part.offset) * 8 // self.dtype.bits
        strides = [stride * elements.itemsize for stride in self._strides]
        first = (self._elements.start - offset) * elements.itemsize
        return np.ndarray(self.shape, elements.dtype, elements.view(np.uint8).data, first, strides)

    def changed(self, elements: Array, mask: Mask) -> Iterator[tuple[range, Bytes]]:
        """The bytes of changed elements, as the fewest spans of neighbours."""
        image = bytes_of_elements(elements, self.dtype)
        per_byte = max(1, 8 // self.dtype.bits)
        cell_bytes = max(1, self.dtype.bits // 8)
        cells = mask.reshape(-1, per_byte).any(axis=1)
        edges = np.flatnonzero(np.diff(cells, prepend=False, append=False)) * cell_bytes
        base = self.span.start
        for start, stop in edges.reshape(-1, 2).tolist():
            yield range(base + start, base + stop), image[start:stop]


def windows(placement: Placement, box: Box) -> Iterator[Window]:
    """The box in all parts that have some of it."""
    for part in placement.parts:
        inside, index = [], []
        for extent, there in zip(box, part.box, strict=True):
            low, high = max(extent.start, there.start), min(extent.stop, there.stop)
            inside.append(range(low - there.start, high - there.start))
            index.append(slice(low - extent.start, high - extent.start))
        if all(inside):
            yield Window(part, placement.dtype, tuple(inside), tuple(index))
