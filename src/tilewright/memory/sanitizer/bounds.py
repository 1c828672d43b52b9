"""One access against the tensors there are: whose bytes does it touch, and how errors tell it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.address import Segments
from tilewright.memory.mapping import Sight
from tilewright.memory.sanitizer.access import Access
from tilewright.memory.sanitizer.finding import Finding, FindingKind, side_of
from tilewright.memory.sanitizer.tensor import TensorBook, TensorPart, WatchedTensor


@dataclass(frozen=True, slots=True)
class Unmap:
    """Virtual bytes that some PEs can no longer translate."""

    low: int
    high: int
    is_for: Callable[[PeCoord], bool]
    at_ps: int

    def has(self, address: int, pe: PeCoord | None) -> bool:
        return self.low <= address < self.high and pe is not None and self.is_for(pe)


def find_at_issue(book: TensorBook, access: Access) -> Finding | None:
    """Return what is wrong with where a translated access goes, as the tensors are now.

    The PE sees the bytes, or they would not be translated (ADR 0019). So another PE's shard of the
    access's own tensor is right, and so are bytes of no tensor: a message has mapped them.
    """
    tensor = access.tensor
    if tensor is None:
        return None
    if tensor.freed_ps is not None:
        return _freed(access, tensor, access.spans[0].address)
    return _beyond(book, access, tensor, None)


def find_at_fault(
    book: TensorBook, access: Access, address: int, unmaps: Sequence[Unmap]
) -> Finding:
    """Why a page that an access needs is not mapped."""
    tensor = access.tensor
    if tensor is None:
        address = access.spans[0].address
        detail, sides = f"{address:#x} was never a byte of any tensor", (side_of(access),)
        kind, where = FindingKind.OUT_OF_BOUNDS, f"{address:#x}"
        return Finding(kind, "no tensor", where, access.num_bytes, detail, sides)
    if tensor.freed_ps is not None:
        return _freed(access, tensor, address)
    for unmap in reversed(unmaps):
        if unmap.has(address, access.pe) and tensor.has(address):
            return _unmapped(access, tensor, address, unmap)
    return _beyond(book, access, tensor, access.pe) or _not_mapped(access, tensor, address)


def find_when_served(access: Access, unmaps: Sequence[Unmap]) -> Finding | None:
    """What has become of its bytes since it was translated; ``unmaps`` are those since then."""
    tensor = access.tensor
    if tensor is None:
        return None
    if tensor.freed_ps is not None:
        return _freed(access, tensor, access.spans[0].address if access.spans else tensor.low)
    for unmap in unmaps:
        for span in access.spans:
            address = max(span.address, unmap.low)
            if address < span.end and unmap.has(address, access.pe):
                return _unmapped(access, tensor, address, unmap)
    return None


def _freed(access: Access, tensor: WatchedTensor, address: int) -> Finding:
    detail = f"{tensor.name} was freed at {tensor.freed_ps} ps"
    return _finding(FindingKind.USE_AFTER_FREE, access, tensor, address, detail)


def _unmapped(access: Access, tensor: WatchedTensor, address: int, unmap: Unmap) -> Finding:
    detail = f"its page was unmapped at {unmap.at_ps} ps, while {tensor.name} lives"
    return _finding(FindingKind.STALE_PAGE, access, tensor, address, detail)


def _not_mapped(access: Access, tensor: WatchedTensor, address: int) -> Finding:
    detail = f"no page of {tensor.name} was ever mapped there for this PE"
    return _finding(FindingKind.STALE_PAGE, access, tensor, address, detail)


def _beyond(
    book: TensorBook, access: Access, tensor: WatchedTensor, viewer: PeCoord | None
) -> Finding | None:
    """Return that an access has bytes of another tensor, of nobody, or not of the viewer's shards.

    A viewer of None has all shards of the tensor.
    """
    found = [tensor.outside(viewer, span) for span in access.spans]
    outside = [each for each in found if each is not None]
    if not outside:
        return None
    address = outside[0][0]
    finding = _at(book, access, tensor, address)
    return replace(finding, num_bytes=sum(num_bytes for _, num_bytes in outside))


def _at(book: TensorBook, access: Access, tensor: WatchedTensor, address: int) -> Finding:
    homes = tensor.homes_of(address)
    if homes:
        names = ", ".join(place_name(home) for home in homes)
        here = "this PE" if access.pe is None else place_name(access.pe)
        detail = f"the element is in the shard of {names}; {here} has no copy of it"
        return _finding(FindingKind.STALE_PAGE, access, tensor, address, detail)
    where = _distance(tensor, address)
    other = book.before(address)
    if other is not None and other is not tensor and other.has(address):
        where += f": that is {other.element_at(address)} of {other}"
    else:
        where += ", where no tensor is"
    return _finding(
        FindingKind.OUT_OF_BOUNDS, access, tensor, address, f"the first of them is {where}"
    )


def _distance(tensor: WatchedTensor, address: int) -> str:
    if address >= tensor.high:
        return f"{address - tensor.high} bytes behind the end of {tensor.name}"
    if address < tensor.low:
        return f"{tensor.low - address} bytes before the start of {tensor.name}"
    return f"in a gap between elements of {tensor.name}"


def _finding(
    kind: FindingKind, access: Access, tensor: WatchedTensor, address: int, detail: str
) -> Finding:
    element = tensor.element_at(address)
    return Finding(kind, str(tensor), element, access.num_bytes, detail, (side_of(access),))


MAX_BOXES = 3  # that a text names

Box = list[range]


def access_text(
    book: TensorBook, pe: PeCoord, spans: Sequence[Segments], address: int
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


def _outside(book: TensorBook, spans: Sequence[Segments], address: int) -> tuple[str, str, str]:
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


def _segments(spans: Iterable[Segments]) -> Iterable[tuple[int, int]]:
    for span in spans:
        for place in range(span.num_segments):
            start = span.address + place * span.stride_bytes
            yield start, start + span.segment_bytes


def _boxes_text(tensor: WatchedTensor, ranges: Iterable[tuple[int, int]]) -> str:
    """The smallest boxes that have all elements of byte ranges, one for each part of a tensor.

    >>> part = TensorPart(address=96, low=(16, 0), shape=(16, 64))
    >>> rows = WatchedTensor("a", (64, 64), "int8", 8, [part], ())
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
