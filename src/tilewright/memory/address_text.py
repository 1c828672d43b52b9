"""The text of an access to bytes that a PE does not see: what was asked for, and what it has."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Protocol

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.mapping import Sight
from tilewright.memory.sanitizer.tensor import TensorBook, TensorPart, WatchedTensor

MAX_BOXES = 3  # that a text names

Box = list[range]


class Strided(Protocol):
    """Segments of bytes at equal distances."""

    @property
    def address(self) -> int: ...
    @property
    def num_segments(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...
    @property
    def stride_bytes(self) -> int: ...


def access_text(
    book: TensorBook, pe: PeCoord, spans: Sequence[Strided], address: int
) -> tuple[str, str, str]:
    """Return found, expected and fix for an access by a PE whose byte ``address`` it does not see.

    ``book`` has the tensors that live.
    """
    tensor = book.at(address)
    if tensor is None or not tensor.has(address):
        return _outside(book, spans, address)
    asked = _boxes_text(tensor, _segments(spans))
    own = _boxes_text(tensor, tensor.own_ranges(pe)) if tensor.has_home(pe) else "nothing of it"
    here = place_name(pe)
    found = f"an access to {asked} of tensor {tensor} on {here}, which has {own}"
    if not tensor.has_home(pe):
        fix = f"run the kernel on PEs that have it, or place a part of it in {here}"
        return found, "a PE that has a part of the tensor", fix
    if tensor.sight is Sight.SIP:
        fix = f"keep to the bytes that {here} has, or place others there too"
        return found, "bytes that the PE sees", fix
    fix = (
        f"pass LocalShard of {tensor.name!r} for the start of the PE's own shard, or place it in "
        "whole pages, as by Interleave, and launch with grid="
    )
    return found, "elements of the PE's own shard", fix


def _outside(book: TensorBook, spans: Sequence[Strided], address: int) -> tuple[str, str, str]:
    """The same for a byte that is no tensor's."""
    num_bytes = sum(span.num_segments * span.segment_bytes for span in spans)
    found = f"an access to {num_bytes} bytes, of which {address:#x} is "
    tensor = book.before(address)
    if tensor is None:
        found += "before all tensors"
    else:
        asked = _boxes_text(tensor, _segments(spans))
        of_tensor = f"of tensor {tensor}, which has {tensor.high - tensor.low} bytes"
        found += f"{address - tensor.high} bytes behind the end {of_tensor}"
        if asked:
            found += f"; the others are {asked}"
    fix = "mask what lies outside, or correct the address: an integer address counts bytes"
    return found, "bytes of a tensor", fix


def _segments(spans: Iterable[Strided]) -> Iterable[tuple[int, int]]:
    for span in spans:
        for place in range(span.num_segments):
            start = span.address + place * span.stride_bytes
            yield start, start + span.segment_bytes


def _boxes_text(tensor: WatchedTensor, ranges: Iterable[tuple[int, int]]) -> str:
    """The smallest boxes that have all elements of byte ranges, one for each part of a tensor.

    >>> part = TensorPart(address=96, low=(16, 0), shape=(16, 64))
    >>> rows = WatchedTensor(1, "a", (64, 64), "int8", 8, [part], (), False, 0)
    >>> _boxes_text(rows, [(96 + 64, 96 + 128), (96 + 256, 96 + 260)])
    'a[17:21, 0:64]'
    """
    wanted = list(ranges)
    boxes: list[Box] = []
    for part in tensor.parts:
        high = part.address + -(-part.num_elements * tensor.item_bits // 8)
        of_part = [
            _box(part, tensor.item_bits, max(start, part.address), min(end, high))
            for start, end in wanted
            if max(start, part.address) < min(end, high)
        ]
        if of_part:
            boxes.append(reduce(_joined, of_part))
    texts = [_text(tensor, box) for box in boxes[:MAX_BOXES]]
    more = [f"{len(boxes) - MAX_BOXES} more"] if len(boxes) > MAX_BOXES else []
    return ", ".join([*texts, *more])


def _box(part: TensorPart, item_bits: int, start: int, end: int) -> Box:
    """The smallest box of a part that has all elements of its bytes from start to end."""
    first = part.index_of((start - part.address) * 8 // item_bits)
    last_element = ((end - part.address) * 8 - 1) // item_bits
    last = part.index_of(min(last_element, part.num_elements - 1))
    box: Box = []
    is_whole = False  # an index before it differs: then all of the rest are in between
    for low, high, base, extent in zip(first, last, part.low, part.shape, strict=True):
        box.append(range(base, base + extent) if is_whole else range(low, high + 1))
        is_whole = is_whole or low != high
    return box


def _joined(box: Box, other: Box) -> Box:
    return [
        range(min(one.start, two.start), max(one.stop, two.stop))
        for one, two in zip(box, other, strict=True)
    ]


def _text(tensor: WatchedTensor, box: Box) -> str:
    indices = ", ".join(f"{extent.start}:{extent.stop}" for extent in box)
    return f"{tensor.name}[{indices}]" if box else tensor.name
