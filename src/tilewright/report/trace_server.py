"""What the servers of a device are, so that a trace of numbers can be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tilewright.device.build import Device
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.units import flit_ps

__all__ = ("ServerKind", "ServerTable", "TracedServer")


class ServerKind(IntEnum):
    """How a server's time is told. Whatever is none of the others is a ring's control."""

    CPU = 0
    GEMM = 1
    VECTOR = 2
    TCM_PORT = 3
    LINK = 4
    MEMORY = 5
    CONTROL = 6


_UNITS = {
    "cpu": ServerKind.CPU,
    "gemm": ServerKind.GEMM,
    "vector": ServerKind.VECTOR,
    "tcm.read": ServerKind.TCM_PORT,
    "tcm.write": ServerKind.TCM_PORT,
}


@dataclass(frozen=True, slots=True)
class TracedServer:
    """A server by its number; ``pe`` is the PE whose unit it is or whose DMA a link joins."""

    number: int
    name: str
    kind: ServerKind
    latency_ps: int = 0
    flit_ps: int = 0  # of a link
    unit: str = ""  # "cpu", "tcm.read", ...
    leaves: PeCoord | None = None  # a link from the DMA of this PE
    reaches: PeCoord | None = None  # a link to it


class ServerTable:
    """Grows with the engine: units of PEs and rings appear at their first use."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._links = {server: link for link, server in device.links.items()}
        self._memories = set(device.memories.values())
        self._servers: list[TracedServer] = []

    def __getitem__(self, number: int) -> TracedServer:
        if number >= len(self._servers):
            self._grow()
        return self._servers[number]

    def __len__(self) -> int:
        return len(self._servers)

    def __iter__(self) -> Iterator[TracedServer]:
        self._grow()
        return iter(self._servers)

    def _grow(self) -> None:
        names = [server.name for server in self._device.engine.statistics().servers]
        for number in range(len(self._servers), len(names)):
            self._servers.append(self._describe(number, names[number]))

    def _describe(self, number: int, name: str) -> TracedServer:
        if number in self._links:
            return self._describe_link(number, name)
        if number in self._memories:
            return TracedServer(number, name, ServerKind.MEMORY)
        unit = next((unit for unit in _UNITS if name.endswith(f".{unit}")), "")
        kind = _UNITS.get(unit, ServerKind.CONTROL)
        return TracedServer(number, name, kind, unit=unit)

    def _describe_link(self, number: int, name: str) -> TracedServer:
        machine = self._device.machine
        link = machine.links[self._links[number]]
        source, target = machine.nodes[link.src], machine.nodes[link.dst]
        return TracedServer(
            number,
            name,
            ServerKind.LINK,
            link.latency_ps,
            flit_ps(flit_bytes=machine.spec.flit_bytes, bytes_per_us=link.bytes_per_us),
            leaves=_dma_of(source.kind, source.where),
            reaches=_dma_of(target.kind, target.where),
        )


def _dma_of(kind: NodeKind, where: object) -> PeCoord | None:
    return where if kind is NodeKind.PE_DMA and isinstance(where, PeCoord) else None
