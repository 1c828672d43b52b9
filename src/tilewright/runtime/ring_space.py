"""Bytes of rings: where the slots of a receiver are, and that they are given back."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tilewright.device.ipcq import RingKind, RingSpec
from tilewright.executor.neighbour import Neighbours
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name
from tilewright.memory.address import MemoryKind, MemoryPlace
from tilewright.memory.allocator import Allocator
from tilewright.runtime.driver import Driver

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
        machine, memory = self._driver.machine, self._driver.memory
        match kind:
            case RingKind.TCM:
                name, size = f"{place_name(pe)}.tcm", machine.spec.pe.tcm.reserved_bytes
                return self._tcms.setdefault(pe, Allocator(name, size))
            case RingKind.SRAM:
                return memory.allocator(MemoryPlace.of(MemoryKind.SRAM, pe))
            case RingKind.HBM:
                return memory.allocator(MemoryPlace(MemoryKind.HBM, pe))


class OwnRings:
    """The bytes of the rings that end with a launch."""

    def __init__(self, space: RingSpace, requester: str) -> None:
        self._space = space
        self._requester = requester
        self._spaces: list[Space] = []

    def place(self, neighbours: Neighbours) -> Neighbours:
        """Return the neighbours with an address for each ring; those that are given stay."""
        addresses = dict(neighbours.addresses)
        for sender, directions in neighbours.table.items():
            for direction in directions:
                receiver = neighbours.arrives_at(sender, direction)
                if receiver not in addresses:
                    space = self._space.allocate(neighbours.ring, receiver[0], self._requester)
                    self._spaces.append(space)
                    addresses[receiver] = space.address
        return replace(neighbours, addresses=addresses)

    def free(self) -> None:
        """Give all bytes back; a second call does nothing."""
        spaces, self._spaces = self._spaces, []
        self._space.free(spaces)


def place_rings(
    driver: Driver, neighbours: Neighbours | None, launch: str
) -> tuple[Neighbours | None, OwnRings]:
    """Allocate the rings of a launch that are in SRAM or HBM and have no address.

    The caller frees them when the launch is over, or if it cannot begin.
    """
    own = OwnRings(RingSpace(driver), f"a ring of launch {launch!r}")
    if neighbours is None or neighbours.ring.kind is RingKind.TCM:
        return neighbours, own
    try:
        return own.place(neighbours), own
    except BaseException:
        own.free()
        raise
