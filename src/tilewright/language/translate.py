"""From the addresses of an access to the memories that hold them, with what it costs to know."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tilewright.device.dma import Access
from tilewright.device.mmu import Mmu, VirtualPage
from tilewright.language.access import Layout
from tilewright.language.order import Span

__all__ = ("Piece", "Translator")


class Piece(NamedTuple):
    """Segments of an access, or a part of each, at equal distances in one memory."""

    memory: int  # which
    address: int  # there
    first_segment: int  # of the access
    num_segments: int
    skip_bytes: int  # of a segment, before this part of it
    num_bytes: int  # of this part
    stride_bytes: int
    walk_ps: int


class Translator:
    """The MMU of a PE in front of the memories; ``homes`` has the memory of a physical page."""

    def __init__(self, mmu: Mmu, homes: Mapping[int, tuple[int, int]]) -> None:
        self._mmu = mmu
        self._homes = homes  # by physical page: memory, address there
        self.trips: dict[tuple[int, Access], int] = {}  # by memory: the way of its accesses
        self._shift = mmu.spec.page_bytes.bit_length() - 1

    def spans(self, base: int, layout: Layout) -> list[Span]:
        """Where an access lies in virtual addresses."""
        size = layout.segment_bytes
        return [
            Span(base + row.offset, row.num_segments, size, row.stride_bytes) for row in layout.rows
        ]

    def pieces(self, spans: list[Span]) -> list[Piece]:
        """All of an access, in order."""
        found: list[Piece] = []
        first = 0
        for span in spans:
            found.extend(self._pieces(span, first))
            first += span.num_segments
        return found

    def _pieces(self, span: Span, first: int) -> Iterator[Piece]:
        place = 0
        while place < span.num_segments:
            address = span.address + place * span.stride_bytes
            memory, there, length, walk_ps = self._run(address, span.end - address)
            if length < span.segment_bytes:
                yield from self._split(address, span.segment_bytes, first + place)
                place += 1
                continue
            fitting = (length - span.segment_bytes) // span.stride_bytes + 1
            count = min(span.num_segments - place, fitting)
            yield Piece(
                memory, there, first + place, count, 0, span.segment_bytes, span.stride_bytes,
                walk_ps,
            )  # fmt: skip
            place += count

    def _split(self, address: int, num_bytes: int, segment: int) -> Iterator[Piece]:
        """One segment that lies in several memories."""
        done = 0
        while done < num_bytes:
            memory, there, length, walk_ps = self._run(address + done, num_bytes - done)
            part = min(length, num_bytes - done)
            yield Piece(memory, there, segment, 1, done, part, part, walk_ps)
            done += part

    def _run(self, address: int, wanted: int) -> tuple[int, int, int, int]:
        """Memory, address there, how far it goes on there, and the time of the slowest walk."""
        shift, mmu = self._shift, self._mmu
        page = address >> shift
        translation = mmu.translate(VirtualPage(page))
        memory, base = self._homes[translation.page]
        inside = address - (page << shift)
        length, walk_ps = (1 << shift) - inside, translation.cost_ps
        while length < wanted:
            page += 1
            translation = mmu.translate(VirtualPage(page))
            if self._homes[translation.page] != (memory, base + inside + length):
                break
            length += 1 << shift
            walk_ps = max(walk_ps, translation.cost_ps)
        return memory, base + inside, length, walk_ps
