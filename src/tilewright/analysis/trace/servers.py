"""What the servers of a device are, so that a trace of numbers can be read."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tilewright.device.build import Device, link_block
from tilewright.device.memory import slice_spec, sram_memory
from tilewright.engine.dram.spec import BankedRefreshSpec, BankedSpec, RefreshScope, SimpleSpec
from tilewright.machine.coords import PeCoord
from tilewright.machine.field import latency_fields, rate_field
from tilewright.machine.node import NodeKind
from tilewright.units import flit_ps


class ServerKind(IntEnum):
    """How a server's time is told. Whatever is none of the others is a ring's control."""

    CPU = 0
    GEMM = 1
    VECTOR = 2
    TCM_PORT = 3
    LINK = 4
    MEMORY = 5
    CONTROL = 6


_UNITS = {  # of PEs, with the field of the machine file that sets how long their work takes
    "cpu": (ServerKind.CPU, "pe.cpu.command_ps"),
    "gemm": (ServerKind.GEMM, "pe.gemm.hz"),
    "vector": (ServerKind.VECTOR, "pe.vector.hz"),
    "tcm.read": (ServerKind.TCM_PORT, "pe.tcm.read_bytes_per_us"),
    "tcm.write": (ServerKind.TCM_PORT, "pe.tcm.write_bytes_per_us"),
}
_CONTROL_FIELDS = {
    "control": "pe.scheduler.command_ps",  # of a ring
    "io_cpu": "sip.io_cpu.command_ps",
    "m_cpu": "cube.m_cpu.command_ps",
}
_MEMORY_FIELDS = {
    NodeKind.HBM_CTRL: "cube.hbm.timing.clock_ps",
    NodeKind.SRAM: "cube.sram.bytes_per_us",
}


@dataclass(frozen=True, slots=True)
class TracedServer:
    """A server by its number; ``pe`` is the PE whose unit it is or whose DMA a link joins."""

    number: int
    name: str
    kind: ServerKind
    latency_ps: int = 0
    flit_ps: int = 0  # of a link
    reassembles: bool = False  # a link that takes a packet in whole before it forwards it
    unit: str = ""  # "cpu", "tcm.read", ...
    leaves: PeCoord | None = None  # a link from the DMA of this PE
    reaches: PeCoord | None = None  # a link to it
    refresh: BankedRefreshSpec | None = None  # of a memory that refreshes all its banks at a time
    memory: BankedSpec | SimpleSpec | None = None  # None: no memory, or a block of the user's
    rate_field: str = ""  # of the machine file, that sets how long its work takes; "": unknown
    latency_fields: tuple[tuple[str, int], ...] = ()  # what its latency consists of


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
            return self._describe_memory(number, name)
        unit = next((unit for unit in _UNITS if name.endswith(f".{unit}")), "")
        last_word = name.rpartition(".")[2].partition(" ")[0]  # queues of rings are numbered
        other = ServerKind.CONTROL, _CONTROL_FIELDS.get(last_word, "")
        kind, field = _UNITS.get(unit, other)
        return TracedServer(number, name, kind, unit=unit, rate_field=field)

    def _describe_memory(self, number: int, name: str) -> TracedServer:
        machine = self._device.machine
        node, spec = machine.nodes[self._memories[number]], machine.spec.cube
        memory: BankedSpec | SimpleSpec | None = None
        if isinstance(node.where, PeCoord):
            if spec.hbm.impl is None:
                memory = slice_spec(spec.hbm, node.where.pe, spec.pes)
        elif spec.sram.impl is None:
            memory = sram_memory(spec.sram, packet_bytes=machine.spec.packet_bytes)
        refresh = memory.refresh if isinstance(memory, BankedSpec) else None
        if refresh is not None and refresh.scope is not RefreshScope.ALL_BANKS:
            refresh = None
        latency_fields: tuple[tuple[str, int], ...] = ()
        if isinstance(memory, SimpleSpec) and memory.latency_ps:
            latency_fields = (("cube.hbm.simple_latency_ps", memory.latency_ps),)
        return TracedServer(
            number,
            name,
            ServerKind.MEMORY,
            refresh=refresh,
            memory=memory,
            rate_field="" if memory is None else _MEMORY_FIELDS[node.kind],
            latency_fields=latency_fields,
        )

    def _describe_link(self, number: int, name: str) -> TracedServer:
        machine = self._device.machine
        link = machine.links[self._links[number]]
        source, target = machine.nodes[link.src], machine.nodes[link.dst]
        is_own = link_block(machine, link).impl is None
        return TracedServer(
            number,
            name,
            ServerKind.LINK,
            link.latency_ps,
            flit_ps(flit_bytes=machine.spec.flit_bytes, bytes_per_us=link.bytes_per_us),
            link.reassemble,
            leaves=_dma_of(source.kind, source.where),
            reaches=_dma_of(target.kind, target.where),
            rate_field=rate_field(machine, self._links[number]) if is_own else "",
            latency_fields=tuple(latency_fields(machine, self._links[number])) if is_own else (),
        )


def _dma_of(kind: NodeKind, where: object) -> PeCoord | None:
    return where if kind is NodeKind.PE_DMA and isinstance(where, PeCoord) else None
