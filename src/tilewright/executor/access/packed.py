"""Accesses to elements of four bits, whose addresses count halves of a byte."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.executor.access.layout import Layout
from tilewright.executor.access.order import Span
from tilewright.language.affine import Box
from tilewright.language.packing import (
    halves_of_bytes,
    halves_of_int4,
    int4_of_halves,
    packed_halves,
)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
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
        if (base + row.offset) % 2 or (row.num_segments > 1 and row.stride_bytes % 2):
            return None
        start, stride_bytes = (base + row.offset) // 2, row.stride_bytes // 2
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
