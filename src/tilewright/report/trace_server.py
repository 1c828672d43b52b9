"""What the servers of a device are, so that a trace of numbers can be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tilewright.device.build import Device
from tilewright.device.hbm import slice_spec
from tilewright.engine.banked_spec import BankedSpec, RefreshScope
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.units import flit_ps

__all__ = ("RefreshTimes", "ServerKind", "ServerTable", "TracedServer")


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
class RefreshTimes:
    """When a memory is asked to refresh all its banks."""

    first_ps: int
    interval_ps: int

    def last_due_ps(self, at_ps: int) -> int:
        """The last such time that is not after this one."""
        return self.first_ps + (at_ps - self.first_ps) // self.interval_ps * self.interval_ps


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
    refresh: RefreshTimes | None = None  # of a memory that refreshes all its banks at a time


class ServerTable:
    """Grows with the engine: units of PEs and rings appear at their first use."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._links = {server: link for link, server in device.links.items()}
        self._memories = {server: node for node, server in device.memories.items()}
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
            return TracedServer(number, name, ServerKind.MEMORY, refresh=self._refresh(number))
        unit = next((unit for unit in _UNITS if name.endswith(f".{unit}")), "")
        kind = _UNITS.get(unit, ServerKind.CONTROL)
        return TracedServer(number, name, kind, unit=unit)

    def _refresh(self, number: int) -> RefreshTimes | None:
        machine = self._device.machine
        where, cube = machine.nodes[self._memories[number]].where, machine.spec.cube
        if not isinstance(where, PeCoord) or cube.hbm.impl is not None:
            return None
        memory = slice_spec(cube.hbm, machine.slice_map, where.pe, cube.pes)
        refresh = memory.refresh if isinstance(memory, BankedSpec) else None
        if refresh is None or refresh.scope is not RefreshScope.ALL_BANKS:
            return None
        return RefreshTimes(refresh.first_ps, refresh.interval_ps)

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
