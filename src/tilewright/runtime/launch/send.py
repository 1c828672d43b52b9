"""The third step of a launch: its rings, its command to the PEs, and how they begin and end."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.device.command import Delivery
from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.engine import TaskGraph
from tilewright.executor.launcher import Share
from tilewright.executor.neighbour import Neighbours
from tilewright.executor.run import Terms
from tilewright.executor.stream import Stream
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.allocator import Allocator
from tilewright.runtime.device import RunningDevice
from tilewright.runtime.driver import Driver
from tilewright.runtime.launch.bind import LaunchOptions
from tilewright.runtime.request import Request

SRAM_ALIGNMENT = 64  # of rings, so that they share pages


@dataclass(frozen=True, slots=True)
class Space:
    """The bytes of one ring in a memory of its receiver."""

    kind: RingKind
    pe: PeCoord
    address: int
    num_bytes: int


class RingSpace:
    """Allocators of the memories that hold rings; that of the reserved TCM is its own."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._tcms: dict[PeCoord, Allocator] = {}

    def allocate(self, spec: RingSpec, pe: PeCoord, requester: str) -> Space:
        """Allocate one ring at a receiver; raise OutOfMemoryError if there is no room."""
        alignment = SRAM_ALIGNMENT if spec.kind is RingKind.SRAM else None
        address = self._memory(spec.kind, pe).allocate(
            spec.num_bytes, requester=requester, alignment=alignment
        )
        return Space(spec.kind, pe, address, spec.num_bytes)

    def free(self, spaces: Iterable[Space]) -> None:
        """Give the bytes of rings back, each exactly as it was allocated."""
        for space in spaces:
            self._memory(space.kind, space.pe).free(space.address, space.num_bytes)

    def _memory(self, kind: RingKind, pe: PeCoord) -> Allocator:
        driver = self._driver
        if kind is RingKind.TCM:
            size = driver.machine.spec.pe.tcm.reserved_bytes
            return self._tcms.setdefault(pe, Allocator(f"{place_name(pe)}.tcm", size))
        return driver.memory.allocator(MemoryPlace.of(MemoryKind(kind.value), pe))


def place_rings(
    driver: Driver, neighbours: Neighbours | None, launch: str
) -> tuple[Neighbours | None, Callable[[], None]]:
    """Allocate the rings of a launch that are in SRAM or HBM and have no address.

    Return the neighbours with an address for each ring, and what gives the bytes back: the caller
    calls it when the launch is over, or if it cannot begin. A second call does nothing.
    """
    space, requester = RingSpace(driver), f"a ring of launch {launch!r}"
    own: list[Space] = []

    def free() -> None:
        spaces, own[:] = own[:], []
        space.free(spaces)

    if neighbours is None or neighbours.ring.kind is RingKind.TCM:
        return neighbours, free
    addresses = dict(neighbours.addresses)
    try:
        for sender, directions in neighbours.table.items():
            for direction in directions:
                receiver = neighbours.arrives_at(sender, direction)
                if receiver not in addresses:
                    own.append(space.allocate(neighbours.ring, receiver[0], requester))
                    addresses[receiver] = own[-1].address
    except BaseException:
        free()
        raise
    return replace(neighbours, addresses=addresses), free


@dataclass(slots=True)
class LaunchGate:
    """Each PE begins when it has its command; with a common start, when the last of them has.

    No PE begins before ``earliest_start_ps``.
    """

    running: RunningDevice
    request: Request  # of the command
    delivery: Delivery
    arrivals: Mapping[PeCoord, int]  # the tasks by which PEs have their command
    common_start: tuple[int, int] | None = None  # a signal, and the value at which all have it
    earliest_start_ps: int = 0
    starts_ps: dict[PeCoord, int] = field(default_factory=dict)
    ends: dict[PeCoord, tuple[int, int]] = field(default_factory=dict)
    """By PE: when it ended, and the owner of what ended last."""
    num_streams: Counter[PeCoord] = field(default_factory=Counter)  # that have not ended

    def begin(self, stream: Stream) -> None:
        pe, hub = stream.pe.coord, self.running.hub
        hub.wait(self.arrivals[pe], f"the command to {stream.pe.name}")
        if self.common_start is not None:
            hub.wait_signal(*self.common_start)
        if hub.now_ps < self.earliest_start_ps:
            hub.sleep(self.earliest_start_ps - hub.now_ps)
        self.starts_ps.setdefault(pe, hub.now_ps)

    def end(self, stream: Stream) -> None:
        """Wait for the last command of a stream; the last stream of a PE answers."""
        pe, hub = stream.pe.coord, self.running.hub
        stream.wait_for_all()
        self.ends[pe] = hub.now_ps, hub.running.number
        self.num_streams[pe] -= 1
        if self.num_streams[pe]:
            return
        graph = TaskGraph()
        self.running.path.answer(graph, pe, self.delivery.answers[pe], ())
        hub.submit(graph)


def send(
    driver: Driver,
    name: str,
    terms: Terms,
    shares: Sequence[Share],
    options: LaunchOptions,
    num_arguments: int,
) -> LaunchGate:
    """Send the command of a launch to its PEs, and before it what they have to know.

    Return the gate that opens where it has arrived.
    """
    entries = {share.pe: num_arguments for share in shares}
    driver.launcher.check_room(entries)
    before: list[Request] = []
    if terms.neighbours is not None:
        before.append(tell_rings(driver, f"rings of {name!r}", terms.neighbours))
    signal, told = None, entries
    if options.synchronised_start:
        what = f"announcement of {name!r}"  # that all PEs are ready
        before.append(driver.tell(what, entries, is_shared=True, after=before))
        signal = driver.device.engine.add_signal(
            f"start of {name!r} after request {before[-1].request_id}"
        )
        told = dict.fromkeys(entries, 0)
    delivery = driver.running.path.deliver(told, is_shared=True, raises=signal)
    request, arrivals = driver.deliver(f"launch of {name!r}", delivery, before)
    common_start = None if signal is None else (signal, len(shares))
    earliest_ps = options.earliest_start_ps
    return LaunchGate(driver.running, request, delivery, arrivals, common_start, earliest_ps)


def tell_rings(driver: Driver, what: str, neighbours: Neighbours) -> Request:
    """Tell each PE its rings: those that it sends to and those that it receives from."""
    entries: dict[PeCoord, int] = {}
    for pe, directions in neighbours.table.items():
        entries[pe] = entries.get(pe, 0) + len(directions)
        for peer in directions.values():
            entries[peer] = entries.get(peer, 0) + 1
    return driver.tell(what, entries, is_shared=False)
