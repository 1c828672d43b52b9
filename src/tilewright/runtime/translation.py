"""Map and unmap messages on their way to the PEs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.device.mmu import Mmu
from tilewright.errors import TilewrightError
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import VirtualRange
from tilewright.memory.mapping import MapMsg, MapTarget, UnmapMsg, num_entries
from tilewright.memory.page_table import Shared
from tilewright.runtime.driver import Driver
from tilewright.runtime.host_watch import HostWatch
from tilewright.runtime.request import Request


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
        return lambda: mmu.table.map(message.mappings, shared)
    return lambda: _unmap(mmu, watch, pe, message.ranges, shared)


def _unmap(
    mmu: Mmu, watch: HostWatch | None, pe: PeCoord, ranges: Sequence[VirtualRange], shared: Shared
) -> None:
    mmu.unmap(ranges, shared)
    if watch is not None:
        for virtual in ranges:
            watch.note_unmap(pe, virtual)
