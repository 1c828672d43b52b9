"""The addresses of an access: where its elements are, and which memories hold them."""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.device.dma import Access, ChannelDeal
from tilewright.device.mmu import Mmu, Walk
from tilewright.errors import AddressError
from tilewright.executor.layout import Layout
from tilewright.executor.order import Span
from tilewright.language.affine import Affine, broadcast_shapes
from tilewright.language.dtype import int4
from tilewright.language.executor import Executor
from tilewright.language.pointer import is_integer, no_dtype
from tilewright.language.scalar import Int1
from tilewright.language.value import Mask, Pointers
from tilewright.memory.address import VirtualByte
from tilewright.memory.page_table import GAP, PhysicalRun

NO_MEMORY = -1  # of a gap, in which no segment begins or ends


class Piece(NamedTuple):
    """Segments of an access, or a part of each, at equal distances in one memory."""

    memory: int  # which
    address: int  # there
    first_segment: int  # of the access
    num_segments: int
    skip_bytes: int  # of a segment, before this part of it
    num_bytes: int  # of this part
    stride_bytes: int
    walk: int  # the command whose walk it waits for, see Mmu.reach


class Translator:
    """The MMU and the DMA channels of a PE in front of the memories.

    ``locate`` finds the memory of a physical byte, its address there, and the bytes from it on.
    """

    def __init__(
        self, mmu: Mmu, locate: Callable[[int], tuple[int, int, int]], channels: ChannelDeal
    ) -> None:
        self.trips: dict[tuple[int, Access, int], int] = {}  # by memory and channel: the way there
        self.num_streams = 0  # of programs that have begun, and not ended all their commands
        self.channels = channels
        self.mmu = mmu
        self.locate = locate
        self.paths: Any = None  # what compiled code knows of it
        self._page_bytes = mmu.spec.page_bytes
        self._homes: dict[int, tuple[int, int]] = {}  # by physical page: memory, address there

    def count_pages(self) -> None:
        """What compiled code has looked up since the last time joins the counts of the MMU."""
        if self.paths is not None:
            hits, walks = self.paths.take_counts()
            self.mmu.state.hits += hits
            self.mmu.state.walks += walks

    def spans(self, base: int, layout: Layout) -> list[Span]:
        """Where an access lies in virtual addresses."""
        return [Span(base + row.address, *row[1:]) for row in layout.rows]

    def pieces(self, spans: list[Span], by: Walk) -> list[Piece]:
        """All of an access of a command, in order."""
        found: list[Piece] = []
        first = 0
        for span in spans:
            if span.num_segments > 1 and span.stride_bytes > self._page_bytes:
                for place in range(span.num_segments):
                    address = span.address + place * span.stride_bytes
                    one = Span(address, 1, span.segment_bytes, span.segment_bytes)
                    found.extend(self._pieces(one, first + place, by))
            else:
                found.extend(self._pieces(span, first, by))
            first += span.num_segments
        return found

    def _pieces(self, span: Span, first: int, by: Walk) -> Iterator[Piece]:
        """Every page between the first and the last byte has some of them."""
        address, num_segments, size, stride = span
        runs, walk = self._reach(span, by)
        place = done = 0  # the next segment, and bytes of it that are found
        start = address  # of the run
        for memory, there, length in self._in_memories(runs):
            end = start + length
            while place < num_segments:
                at = address + place * stride + done
                if at >= end:
                    break
                where = memory, there + at - start, first + place
                if done or at + size > end:  # a part of a segment
                    part = min(size - done, end - at)
                    yield Piece(*where, 1, done, part, part, walk)
                    done = (done + part) % size
                    place += not done
                else:
                    count = min(num_segments - place, (end - at - size) // stride + 1)
                    yield Piece(*where, count, 0, size, stride, walk)
                    place += count
            start = end

    def _reach(self, span: Span, by: Walk) -> tuple[list[PhysicalRun], int]:
        """Translate all from the first to the last byte of a span; a gap may have other bytes."""
        address, num_segments, size, stride = span
        try:
            return self.mmu.reach(VirtualByte(address), span.end - address, by)
        except AddressError:
            if num_segments == 1:
                raise
        segments = range(address, address + num_segments * stride, stride)
        return self.mmu.reach_segments(segments, size, by)

    def _in_memories(self, runs: list[PhysicalRun]) -> Iterator[tuple[int, int, int]]:
        """Memory, address there and bytes of runs; physical neighbours can be in two memories."""
        for physical, length in runs:
            if physical == GAP:
                yield NO_MEMORY, 0, length
                continue
            memory, there = self._home(physical)
            last = physical + length - 1
            is_one_page = last // self._page_bytes == physical // self._page_bytes
            if is_one_page or self._home(last) == (memory, there + length - 1):
                yield memory, there, length
            else:
                yield from self._page_by_page(physical, length)

    def _page_by_page(self, physical: int, length: int) -> Iterator[tuple[int, int, int]]:
        end = physical + length
        while physical < end:
            part = min(end - physical, self._page_bytes - physical % self._page_bytes)
            yield *self._home(physical), part
            physical += part

    def _home(self, physical: int) -> tuple[int, int]:
        page, inside = divmod(physical, self._page_bytes)
        home = self._homes.get(page)
        if home is None:
            home = self._homes[page] = self.locate(physical - inside)[:2]
        return home[0], home[1] + inside


def aligned(
    program: Executor, pointers: Any, mask: Any, value_shape: tuple[int, ...] = ()
) -> tuple[Pointers, Any]:
    """Addresses and mask of one shape; the mask is False where nothing at all is accessed."""
    if type(pointers) is not Pointers:
        if is_integer(pointers):
            raise no_dtype(program, pointers)
        fix = "pass a tensor argument plus offsets"
        raise program.error(f"{pointers!r} as the address", "pointers", fix)
    shape = pointers.affine.shape
    if mask is not None and type(mask) is not Mask:
        mask = _as_mask(program, mask)
    if value_shape and value_shape != shape:
        shape = _joined(program, shape, value_shape, "values")
    if mask is None or mask is False:
        return _spread_pointers(program, pointers, shape), mask
    if mask.shape != shape:
        shape = _joined(program, shape, mask.shape, "a mask")
        if type(mask) is Mask and mask.box.shape != shape:
            mask = Mask(program, mask.box.broadcast(shape))
    return _spread_pointers(program, pointers, shape), mask


def _joined(
    program: Executor, shape: tuple[int, ...], other: tuple[int, ...], what: str
) -> tuple[int, ...]:
    if not shape and other:
        found = f"{what} of shape {other} with a single address"
        raise program.error(found, "a block of addresses", "add offsets to the pointer")
    return broadcast_shapes(shape, other)


def _spread_pointers(program: Executor, pointers: Pointers, shape: tuple[int, ...]) -> Pointers:
    if shape == pointers.affine.shape:
        return pointers
    affine = pointers.affine.broadcast(shape)
    return Pointers(program, affine, pointers.element, pointers.offsets)


def _as_mask(program: Executor, mask: Any) -> Any:
    """A mask that lets all through is none; one that lets nothing through is False."""
    if isinstance(mask, bool | Int1):
        return None if mask else False
    block = program.block(mask)
    if not block.dtype.is_bool():
        found = f"a mask of {block.type}"
        raise program.error(found, "a mask of truth values", "compare it with a number")
    return block


def addresses_of(program: Executor, pointers: Pointers, mask: Any) -> tuple[Any, Any]:
    """Of the places that the mask lets through, in order; and which places those are."""
    storage = np.dtype(np.int64)
    addresses = pointers.affine.array(storage)
    if pointers.offsets is not None:
        step = pointers.element.step
        addresses = addresses + program.elements(pointers.offsets).astype(storage) * step
    flat = addresses.reshape(-1)
    if mask is None:
        return flat, slice(None)
    places = np.broadcast_to(program.elements(mask), pointers.shape).reshape(-1)
    return flat[places], places


def items_of(program: Executor, pointers: Pointers, mask: Any) -> tuple[Any, int, Any]:
    """What an access by computed offsets reaches, in items as large as its form tells.

    An item is some neighbouring elements that lie together. Returns the address of each, how many
    elements each has, and the places of all elements in the block, in the order of items. The rows
    of a table by an index are an item each; nobody looks at their elements one by one.
    """
    outer = _num_outer_axes(pointers, mask)
    num_elements = prod(pointers.shape[outer:])
    if num_elements == 1 or pointers.offsets is None:
        addresses, places = addresses_of(program, pointers, mask)
        return addresses, 1, places
    shape = pointers.shape[:outer]
    affine = Affine(pointers.affine.base, pointers.affine.strides[:outer], shape)
    offsets = program.elements(pointers.offsets).astype(np.int64) * pointers.element.step
    offsets = offsets.reshape(offsets.shape[: max(0, offsets.ndim - len(pointers.shape) + outer)])
    addresses = np.broadcast_to(affine.array(np.dtype(np.int64)) + offsets, shape)
    if mask is None:
        return addresses.reshape(-1), num_elements, slice(None)
    low, high = mask.box.low[0], mask.box.high[0]
    of_a_row = num_elements * prod(shape[1:])
    rows = addresses[low:high].reshape(-1)
    return rows, num_elements, slice(low * of_a_row, high * of_a_row)


def _num_outer_axes(pointers: Pointers, mask: Any) -> int:
    """Axes before those along which elements lie side by side, whatever the offsets are."""
    shape, strides = pointers.shape, pointers.affine.strides
    if pointers.offsets is None or pointers.element is int4 or not _cuts_first_axis_only(mask):
        return len(shape)
    extents = (*[1] * (len(shape) - len(pointers.offsets.shape)), *pointers.offsets.shape)
    outer, wanted = len(shape), pointers.element.step
    first = 0 if mask is None else 1
    while outer > first and extents[outer - 1] == 1:
        extent = shape[outer - 1]
        if extent != 1 and strides[outer - 1] != wanted:
            break
        wanted *= extent
        outer -= 1
    return outer


def _cuts_first_axis_only(mask: Any) -> bool:
    if mask is None:
        return True
    if type(mask) is not Mask or not mask.shape:
        return False
    box = mask.box
    return not any(box.low[1:]) and box.high[1:] == box.shape[1:]
