"""What the host asks of memories and page tables: bytes there and back, pages mapped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.device.mmu import Mmu
from tilewright.engine import TaskGraph
from tilewright.engine.rows import NO_EFFECT
from tilewright.errors import TilewrightError
from tilewright.executor.effect import Effect, Storage
from tilewright.executor.sanitize.effect import NOTHING
from tilewright.machine.coords import PeCoord
from tilewright.memory.mapping import MapMsg, MapTarget, UnmapMsg, num_entries
from tilewright.memory.page_table import Shared
from tilewright.memory.virtual_range import VirtualRange
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_watch import HostWatch
from tilewright.runtime.placement.pages import MemoryPart
from tilewright.runtime.request import Request

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Fill:
    """Bytes of a part that are the same element again and again, from its first byte on."""

    element: bytes


@dataclass(frozen=True, slots=True)
class _HostFill:
    """What the host filled becomes visible."""

    storage: Storage
    part: MemoryPart
    element: bytes

    def apply(self) -> None:
        self.storage.fill(self.part.offset, self.part.num_bytes, self.element)


@dataclass(frozen=True, slots=True)
class _HostCommit:
    """What the host wrote becomes visible."""

    storage: Storage
    offset: int
    data: Bytes

    def apply(self) -> None:
        self.storage.write_segments(self.data.reshape(1, -1), self.offset, self.data.size)


@dataclass(frozen=True, slots=True)
class _HostCapture:
    """What the host reads is as it is now."""

    storage: Storage
    offset: int
    data: Bytes

    def apply(self) -> bool:
        self.storage.read_segments(self.data.reshape(1, -1), self.offset, self.data.size)
        return False


def write_parts(
    driver: Driver,
    what: str,
    parts: Sequence[tuple[MemoryPart, Bytes | Fill | None]],
    *,
    timed: bool = True,
) -> Request | None:
    """Write from the host, all parts at the same time; without data only time passes.

    Untimed, the bytes are there at once and no request is made.
    """
    effects = [_write_effect(driver, part, data) for part, data in parts]
    return _move(driver, what, [part for part, _ in parts], effects, Access.WRITE, timed)


def _write_effect(driver: Driver, part: MemoryPart, data: Bytes | Fill | None) -> Effect | None:
    if data is None:
        return None
    storage = _storage(driver, part)
    if isinstance(data, Fill):
        return _HostFill(storage, part, data.element)
    return _HostCommit(storage, part.offset, data)


def read_parts(
    driver: Driver, what: str, parts: Sequence[MemoryPart], *, timed: bool = True
) -> tuple[Request | None, list[Bytes]]:
    """Read to the host; the bytes are there when the request is complete."""
    data = [np.empty(part.num_bytes, np.uint8) for part in parts]
    effects = [
        _HostCapture(_storage(driver, part), part.offset, space)
        for part, space in zip(parts, data, strict=True)
    ]
    return _move(driver, what, parts, effects, Access.READ, timed), data


def _move(
    driver: Driver,
    what: str,
    parts: Sequence[MemoryPart],
    effects: Sequence[Effect | None],
    access: Access,
    timed: bool,
) -> Request | None:
    if not timed:
        for effect in effects:
            if effect is not None:
                effect.apply()
        if driver.watch is not None and access is Access.WRITE:
            driver.watch.note_untimed_write(parts)
        return None
    graph = TaskGraph()
    ends = []
    watched = None if driver.watch is None else driver.watch.begin_transfer(what, access)
    for part, effect in zip(parts, effects, strict=True):
        if effect is None and watched is not None:
            effect = NOTHING  # so that it is heard of
        served = NO_EFFECT if effect is None else driver.add_host_effect(effect, what)
        if watched is not None:
            watched.hear(part, served)
        trip = driver.device.host_access(part.place.pe, access, part.place.kind)
        end = graph.exchange(trip, part.num_bytes, served_effect=served, tag=part.offset)
        ends.append(end)
    graph.timer(after=tuple(ends))
    request = driver.submit(what, graph)
    if watched is not None:
        watched.note_request(request)
    return request


def pe_dma(driver: Driver, what: str, pe: PeCoord, part: MemoryPart, access: Access) -> Request:
    """A PE's DMA reads or writes bytes of a memory, for their time alone."""
    graph = TaskGraph()
    kind, home = part.place
    trip = driver.device.pe_access(pe, home, access, memory=kind)
    graph.exchange(trip, part.num_bytes, tag=part.offset)
    return driver.submit(what, graph)


def _storage(driver: Driver, part: MemoryPart) -> Storage:
    return driver.memory.storage(part.place)


@dataclass(slots=True)
class _Change:
    """What a message does to the table of a PE when it is there; a failure is the request's."""

    change: Callable[[], None]
    failures: list[TilewrightError] = field(default_factory=list)

    def apply(self) -> None:
        try:
            self.change()
        except TilewrightError as error:
            self.failures.append(error)


def send_mapping(
    driver: Driver, what: str, message: MapMsg | UnmapMsg, after: Sequence[Request] = ()
) -> Request:
    """Send one message to all PEs that it is for; it takes effect at each of them as it arrives."""
    pes = pes_of(driver, message.target)
    failures: list[TilewrightError] = []
    shared = Shared()
    effects = {
        pe: driver.add_host_effect(_Change(_change(driver, pe, message, shared), failures), what)
        for pe in pes
    }
    entries = dict.fromkeys(pes, num_entries(message.ranges, driver.page_bytes))
    delivery = driver.path.deliver(entries, is_shared=True, effects=effects)
    for pe in pes:
        driver.path.answer(delivery.graph, pe, delivery.answers[pe], (delivery.arrivals[pe],))
    request, _ = driver.deliver(what, delivery, after)
    request.failures = failures
    return request


def pes_of(driver: Driver, target: MapTarget) -> list[PeCoord]:
    """All PEs that a message is for."""
    return [
        PeCoord(target.sip, cube, pe)
        for cube in target.cubes
        for pe in range(driver.machine.spec.cube.pes)
        if target.pe in (None, pe)
    ]


def _change(
    driver: Driver, pe: PeCoord, message: MapMsg | UnmapMsg, shared: Shared
) -> Callable[[], None]:
    mmu, watch = driver.mmu(pe), driver.watch
    if isinstance(message, MapMsg):
        return lambda: mmu.map(message.mappings, shared)
    return lambda: _unmap(mmu, watch, pe, message.ranges, shared)


def _unmap(
    mmu: Mmu, watch: HostWatch | None, pe: PeCoord, ranges: Sequence[VirtualRange], shared: Shared
) -> None:
    mmu.unmap(ranges, shared)
    if watch is not None:
        for virtual in ranges:
            watch.note_unmap(pe, virtual)
