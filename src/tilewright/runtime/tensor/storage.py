"""The elements of a tensor: on the host, or gathered from shards in the machine and scattered.

A read moves, of each part, all bytes from the first to the last element of the box. A write moves
the bytes that change, and no others.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from tilewright.errors import TensorError
from tilewright.executor.layout import bytes_of_elements, elements_of_bytes
from tilewright.language.dtype import DType
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace
from tilewright.runtime.placement.pages import MemoryPart, TensorPages
from tilewright.runtime.placement.placement import Part, Placement
from tilewright.runtime.placement.policy import Box, is_contiguous, strides_of

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
    def _elements(self) -> range:
        """From the first to the last, by their number in the part."""
        both = list(zip(self.inside, strides_of(self.part.shape), strict=True))
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
        strides = [stride * elements.itemsize for stride in strides_of(self.part.shape)]
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


class Transport(Protocol):
    """The way between the host and the memories of a machine.

    What is ``timed`` goes over the modelled links, and is done when the call returns.
    """

    def write(
        self, parts: Sequence[MemoryPart], data: Sequence[Bytes] | None, *, timed: bool
    ) -> None:
        """Bytes for each part; without data it only takes its time."""

    def read(self, parts: Sequence[MemoryPart], *, timed: bool) -> Sequence[Bytes]:
        """The bytes of each part."""

    def free(self, pages: TensorPages) -> None:
        """Unmap the pages of a tensor and give them back."""

    def abandon(self, pages: TensorPages) -> None:
        """Remember pages whose tensor has gone, to free them later. Called at any moment."""


class DeviceStorage:
    """Reads one copy of an element, writes all of them. Without values it only takes its time."""

    def __init__(self, pages: TensorPages, transport: Transport, *, has_values: bool) -> None:
        self.pages = pages
        self.has_values = has_values
        self.transport = transport
        self.placement = pages.placement

    def read(self, box: Box, *, timed: bool) -> Array:
        """The elements of a box. Copies of one that differ are refused."""
        shown = list(windows(self.placement, box))
        wanted = [list(self.pages.read_parts(window.span)) for window in shown]
        parts = [part for of_window in wanted for _, part in of_window]
        found = iter(self.transport.read(parts, timed=timed) if parts else ())
        out = np.empty(tuple(map(len, box)), self.placement.dtype.storage)
        for window, of_window in zip(shown, wanted, strict=True):
            image = np.empty(len(window.span), np.uint8)
            for start, part in of_window:
                image[start : start + part.num_bytes] = next(found)
            self._check_copies(window, image)
            out[window.index] = window.view(window.elements(image))
        return out

    def _check_copies(self, window: Window, image: Bytes) -> None:
        """Programs may have stored into one copy and not into another."""
        if not self.has_values:
            return
        owned = set(self.pages.read_parts(window.span))
        for start, part in self.pages.write_parts(window.span):
            if (start, part) in owned:
                continue
            (data,) = self.transport.read([part], timed=False)
            if np.array_equal(data, image[start : start + part.num_bytes]):
                continue
            other = image.copy()
            other[start : start + part.num_bytes] = data
            shown = [window.view(window.elements(bytes_)) for bytes_ in (image, other)]
            if shown[0].tobytes() != shown[1].tobytes():  # not only elements beside the box
                raise self._copies_differ(window.span.start + start, part.place)

    def _copies_differ(self, offset: int, place: MemoryPlace) -> TensorError:
        owner = self.placement.memory_of(self.placement.owner_of(offset))
        found = f"other values in {place} than in {owner}"
        expected = "copies that are the same"
        fix = "split it or place it on one PE, or look at one copy: t.local(pe)"
        return TensorError(self.placement.where, found, expected, fix)

    def read_shard(self, pe: PeCoord, *, timed: bool) -> Array:
        """The elements of the box that a PE has, from its own copy."""
        part = self.placement.shard_of(pe).part
        pieces = [part for piece in self.pages.pieces(pe) for part in piece.parts]
        image = np.concatenate(self.transport.read(pieces, timed=timed))
        count = prod(part.shape)
        return elements_of_bytes(image, self.placement.dtype, count).reshape(part.shape)

    def write(
        self,
        box: Box,
        array: Array,
        *,
        timed: bool,
        mask: Mask | None = None,
        only: Collection[PeCoord] | None = None,
    ) -> None:
        """Write the elements of a box; with a mask, only where it is true and no other byte.

        ``only`` names the PEs whose copies are written; the other copies stay as they are.
        """
        kept = None if only is None else {self.placement.memory_of(pe) for pe in only}
        parts: list[MemoryPart] = []
        data: list[Bytes] = []
        for window in windows(self.placement, box):
            for span, image in self._spans(window, array, mask):
                for start, part in self.pages.write_parts(span):
                    if kept is not None and part.place not in kept:
                        continue
                    parts.append(part)
                    data.append(image[start : start + part.num_bytes])
        if parts:
            self.transport.write(parts, data if self.has_values else None, timed=timed)

    def _spans(
        self, window: Window, array: Array, mask: Mask | None
    ) -> Iterator[tuple[range, Bytes]]:
        """The bytes that change."""
        if mask is None and window.is_plain:
            yield window.span, bytes_of_elements(array[window.index], self.placement.dtype)
            return
        image = np.zeros(len(window.span), np.uint8)
        if self.placement.dtype.bits < 8:  # the other half of a byte stays what it is
            parts = list(self.pages.read_parts(window.span))
            found = self.transport.read([part for _, part in parts], timed=False)
            for (start, part), piece in zip(parts, found, strict=True):
                image[start : start + part.num_bytes] = piece
        elements = window.elements(image)
        where = True if mask is None else mask[window.index]
        np.copyto(window.view(elements), array[window.index], where=where)
        changed = np.zeros(elements.size, np.bool_)
        window.view(changed)[...] = where
        yield from window.changed(elements, changed)


class HostStorage:
    """An array of its own. No access takes simulated time."""

    has_values = True

    def __init__(self, array: Array) -> None:
        self._array = array.copy(order="C")

    def read(self, box: Box, *, timed: bool) -> Array:  # noqa: ARG002 -- as of a device
        """A copy of the elements of a box."""
        return np.array(self._array[_index(box)])

    def write(self, box: Box, array: Array, *, timed: bool, mask: Mask | None = None) -> None:  # noqa: ARG002
        """The elements of a box; with a mask, only where it is true."""
        np.copyto(self._array[_index(box)], array, where=True if mask is None else mask)


def _index(box: Box) -> tuple[Any, ...]:
    return (*(slice(extent.start, extent.stop) for extent in box), ...)  # of a scalar: an array
