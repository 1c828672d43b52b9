"""From the addresses of an access to the memories that hold them, with what it costs to know."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tilewright.device.dma import Access, ChannelDeal
from tilewright.device.mmu import Mmu, Walk
from tilewright.errors import AddressError
from tilewright.executor.access.layout import Layout
from tilewright.executor.access.order import Span
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
        size = layout.segment_bytes
        return [
            Span(base + row.offset, row.num_segments, size, row.stride_bytes) for row in layout.rows
        ]

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
                if done or at + size > end:  # a part of a segment
                    part = min(size - done, end - at)
                    yield Piece(
                        memory, there + at - start, first + place, 1, done, part, part, walk
                    )
                    done = (done + part) % size
                    place += not done
                else:
                    count = min(num_segments - place, (end - at - size) // stride + 1)
                    yield Piece(
                        memory, there + at - start, first + place, count, 0, size, stride, walk
                    )
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
            if last // self._page_bytes == physical // self._page_bytes or self._home(last) == (
                memory,
                there + length - 1,
            ):
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
