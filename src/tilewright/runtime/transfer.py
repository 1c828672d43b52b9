"""What the host asks of memories and page tables: bytes there and back, pages mapped."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewright.device.dma import Access
from tilewright.device.mmu import Mmu
from tilewright.engine import TaskGraph
from tilewright.engine.core import NO_EFFECT
from tilewright.errors import TilewrightError
from tilewright.machine.coords import PeCoord
from tilewright.memory.mapping import MapMsg, UnmapMsg, num_entries
from tilewright.memory.page_table import Shared
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_watch import HostWatch
from tilewright.runtime.placement.pages import MemoryPart
from tilewright.runtime.request import Request

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

Act = Callable[[], object]
"""What happens to memory when a transfer has been served; it does not refer to the driver."""


def write_parts(
    driver: Driver,
    what: str,
    parts: Sequence[tuple[MemoryPart, Bytes | bytes | None]],
    *,
    timed: bool = True,
) -> Request | None:
    """Write from the host, all parts at the same time; without data only time passes.

    ``bytes`` are an element that fills its part, an array is what the part becomes. Untimed, they
    are there at once and no request is made.
    """
    acts: list[Act | None] = []
    for part, data in parts:
        storage = driver.memory.storage(part.place)
        if data is None:
            acts.append(None)
        elif isinstance(data, np.ndarray):
            row = data.reshape(1, -1)
            acts.append(partial(storage.write_segments, row, part.offset, data.size))
        else:
            acts.append(partial(storage.fill, part.offset, part.num_bytes, data))
    return _move(driver, what, [part for part, _ in parts], acts, Access.WRITE, timed)


def read_parts(
    driver: Driver, what: str, parts: Sequence[MemoryPart], *, timed: bool = True
) -> tuple[Request | None, list[Bytes]]:
    """Read to the host; the bytes are there when the request is complete."""
    data = [np.empty(part.num_bytes, np.uint8) for part in parts]
    acts: list[Act | None] = []
    for part, space in zip(parts, data, strict=True):
        storage = driver.memory.storage(part.place)
        acts.append(partial(storage.read_segments, space.reshape(1, -1), part.offset, space.size))
    return _move(driver, what, parts, acts, Access.READ, timed), data


def _move(
    driver: Driver,
    what: str,
    parts: Sequence[MemoryPart],
    acts: Sequence[Act | None],
    access: Access,
    timed: bool,
) -> Request | None:
    if not timed:
        for act in acts:
            if act is not None:
                act()
        if driver.watch is not None and access is Access.WRITE:
            driver.watch.note_untimed_write(parts)
        return None
    graph = TaskGraph()
    ends = []
    watched = None if driver.watch is None else driver.watch.begin_transfer(what, access)
    for part, act in zip(parts, acts, strict=True):
        served = NO_EFFECT
        if act is not None or watched is not None:  # which is to hear of it
            changes = act is not None and access is Access.WRITE
            served = driver.add_host_effect(act or _nothing, what, changes=changes)
        if watched is not None:
            watched.hear(part, served)
        trip = driver.device.host_access(part.place.pe, access, part.place.kind)
        end = graph.exchange(trip, part.num_bytes, served_effect=served, tag=part.offset)
        ends.append(end)
    graph.timer(after=tuple(ends))
    request = driver.submit(what, graph)
    if watched is not None:
        watched.watch.note_request(request, watched.launch)
    return request


def _nothing() -> None:
    """Leave memory as it is."""


def pe_dma(driver: Driver, what: str, pe: PeCoord, part: MemoryPart, access: Access) -> Request:
    """A PE's DMA reads or writes bytes of a memory, for their time alone."""
    graph = TaskGraph()
    kind, home = part.place
    trip = driver.device.pe_access(pe, home, access, memory=kind)
    graph.exchange(trip, part.num_bytes, tag=part.offset)
    return driver.submit(what, graph)


def send_mapping(driver: Driver, what: str, message: MapMsg | UnmapMsg) -> Request:
    """Send one message to all PEs that it is for; it takes effect at each of them as it arrives."""
    target = message.target
    pes = [
        PeCoord(target.sip, cube, pe)
        for cube in target.cubes
        for pe in range(driver.machine.spec.cube.pes)
        if target.pe in (None, pe)
    ]
    failures: list[TilewrightError] = []
    shared = Shared()
    effects = {
        pe: driver.add_host_effect(
            partial(_change_table, driver.mmus[pe], driver.watch, pe, message, shared, failures),
            what,
        )
        for pe in pes
    }
    entries = dict.fromkeys(pes, num_entries(message.ranges, driver.page_bytes))
    request = driver.tell(what, entries, is_shared=True, effects=effects)
    request.failures = failures
    return request


def _change_table(
    mmu: Mmu,
    watch: HostWatch | None,
    pe: PeCoord,
    message: MapMsg | UnmapMsg,
    shared: Shared,
    failures: list[TilewrightError],
) -> None:
    """Do to the table of a PE what a message says; a failure is the request's."""
    try:
        if isinstance(message, MapMsg):
            mmu.table.map(message.mappings, shared)
            return
        mmu.unmap(message.ranges, shared)
        if watch is not None:
            for virtual in message.ranges:
                watch.note_unmap(pe, virtual)
    except TilewrightError as error:
        failures.append(error)
