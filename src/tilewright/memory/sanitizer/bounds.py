"""One access against the tensors there are: whose bytes does it touch, and do they still live?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.sanitizer.access import Access
from tilewright.memory.sanitizer.finding import Finding, FindingKind, side_of
from tilewright.memory.sanitizer.tensor import TensorBook, WatchedTensor


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
        return _wild(access)
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


def _wild(access: Access) -> Finding:
    address = access.spans[0].address
    detail = f"{address:#x} was never a byte of any tensor"
    kind = FindingKind.OUT_OF_BOUNDS
    return Finding(kind, "no tensor", f"{address:#x}", access.num_bytes, detail, (side_of(access),))


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
