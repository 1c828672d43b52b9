"""Calls of the host: their lines, those that are refused, what a sanitizer hears of them."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import tilewright
from tilewright.device.dma import Access
from tilewright.errors import KernelError
from tilewright.executor.effect import WatchedEffectLog
from tilewright.executor.layout import item_bits
from tilewright.language.executor import program_here
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import VirtualRange
from tilewright.memory.sanitizer.access import AccessKind, Launch
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.sanitizer.tensor import Region, TensorBook, TensorPart, WatchedTensor
from tilewright.runtime.placement.pages import MemoryPart, TensorPages
from tilewright.runtime.request import Request

PACKAGE = Path(tilewright.__file__).parent
ROOMS = (
    *(str(PACKAGE / room) for room in ("runtime", "host", "collectives", "parallel", "interop")),
    contextlib.__file__,
)
"""Where no line of a user's host program is."""


def watched_tensor(pages: TensorPages) -> WatchedTensor:
    """Describe a tensor to a book or a sanitizer."""
    placement, base = pages.placement, pages.base
    regions = [
        Region(
            home=home,
            offset=piece.offset,
            address=base + piece.span.start,
            num_bytes=len(piece.span),
            kind=placement.memory,
            times=piece.times,
            step=piece.step,
            offset_step=piece.offset_step,
        )
        for home in placement.homes
        for piece in pages.repeated_pieces(home)
    ]
    parts = [
        TensorPart(base + part.offset, tuple(extent.start for extent in part.box), part.shape)
        for part in placement.parts
    ]
    bits = item_bits(placement.dtype)
    return WatchedTensor(
        placement.name, placement.shape, str(placement.dtype), bits, parts, regions, pages.sight
    )


def book_of(tensors: Iterable[TensorPages]) -> TensorBook:
    """Return a book of these tensors, for the text of one error."""
    return TensorBook(map(watched_tensor, tensors))


class HostWatch:
    """Between the driver of one context and its sanitizer; all of it takes no simulated time."""

    def __init__(self, now_ps: Callable[[], int]) -> None:
        self.sanitizer = Sanitizer()
        self.effects = WatchedEffectLog()  # of the device that there is now
        self._now_ps = now_ps
        self._tensors: dict[int, WatchedTensor] = {}  # by where they start
        self._launches: dict[Request, Launch] = {}  # that the host has not waited for

    # -- tensors ---------------------------------------------------------------------------------

    def note_tensor(self, pages: TensorPages) -> None:
        """A tensor has memory, which nobody has written."""
        self._tensors[pages.base] = self.sanitizer.note_tensor(watched_tensor(pages))

    def note_free(self, pages: TensorPages) -> None:
        """Its memory is to be given back."""
        self.sanitizer.note_free(self._tensors.pop(pages.base), self._now_ps())

    def note_unmap(self, pe: PeCoord, virtual: VirtualRange) -> None:
        """A PE has lost the translation of some bytes."""
        self.sanitizer.note_unmap(virtual.first, virtual.end, pe.__eq__, self.effects.at_ps)

    # -- requests --------------------------------------------------------------------------------

    def begin_transfer(self, what: str, access: Access) -> "WatchedTransfer":
        """The host reads or writes memory, part by part."""
        kind = AccessKind.HOST_READ if access is Access.READ else AccessKind.HOST_WRITE
        return WatchedTransfer(self, kind, self.sanitizer.begin_launch(what), host_line())

    def note_untimed_write(self, parts: Sequence[MemoryPart]) -> None:
        """Outside of simulated time; to read so is to look, and no access."""
        regions = [
            Region(part.place.pe, part.offset, 0, part.num_bytes, part.place.kind) for part in parts
        ]
        kind = AccessKind.HOST_WRITE
        self.sanitizer.note_host_access(kind, regions, self._now_ps(), host_line())

    def note_request(self, request: Request, launch: Launch) -> None:
        """Who waits for the request knows that all of this is complete."""
        self._launches[request] = launch

    def note_wait(self, request: Request) -> None:
        launch = self._launches.pop(request, None)
        if launch is not None:
            self.sanitizer.end_launch(launch)

    def note_settled(self, worker: int | None) -> None:
        """All that a worker has submitted is complete, and it knows."""
        for request in [each for each in self._launches if each.worker == worker]:
            self.note_wait(request)


@dataclass(frozen=True, slots=True)
class WatchedTransfer:
    """One transfer of the host."""

    watch: HostWatch
    kind: AccessKind
    launch: Launch
    line: str

    def hear(self, part: MemoryPart, served: int) -> None:
        """Tell the sanitizer of a part of it when the effect ``served`` happens."""
        sanitizer = self.watch.sanitizer
        access = sanitizer.begin_host_access(self.launch, self.kind, *part, self.line)
        self.watch.effects.watch(
            served, 1, lambda at_ps: sanitizer.complete(access, at_ps), self.launch.name
        )


def host_line() -> str:
    """The innermost line of the host program; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(ROOMS):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def check_host_call(what: str) -> None:
    """Raise KernelError if the caller is a program of a kernel; ``what`` is what it asks for."""
    program = program_here()
    if program is None:
        return
    found = f"a call of the host ({what}) inside a kernel"
    fix = "make it before or after the launch, and pass tensors to the kernel"
    raise KernelError(f"{host_line()}, {program}", found, "calls of tl alone", fix)
