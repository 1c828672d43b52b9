"""One compute die as a template: all cubes of a machine are alike, so it is made once.

Numbers of nodes and links are local here; ``topology`` shifts them for every cube.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never

from tilewright.machine.coords import Side
from tilewright.machine.node import Link, LinkKind, NodeKind, NodeName
from tilewright.machine.spec import CrossbarSpec, CubeSpec, MachineSpec, MeshSpec, RingSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.draft import Draft
from tilewright.machine.topology.layout import DieLayout, plan_crossbar_layout, plan_ring_layout
from tilewright.machine.topology.mesh import plan_mesh_layout
from tilewright.units import wire_ps

Leg = tuple[tuple[int, int], ...]
"""Links through one die, each with the sublevel of its channel."""


@dataclass(frozen=True, slots=True)
class DieNode:
    """A node of the template: its name lacks the die's place."""

    name: NodeName
    latency_ps: int
    buffer_bytes: int
    position_um: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DieTemplate:
    """Nodes and links of one die, and the way between any two nodes that sit on its routers."""

    layout: DieLayout
    nodes: tuple[DieNode, ...]
    links: tuple[Link, ...]
    seats: Mapping[int, int]  # the router on which a node sits
    connections: Mapping[Side, tuple[int, ...]]
    requesters: tuple[int, ...]
    targets: tuple[int, ...]
    pcie_ep: int | None  # only on a die without an IO chiplet
    link_between: Mapping[tuple[int, int], int] = field(repr=False)
    legs: dict[tuple[int, int], Leg] = field(default_factory=dict, repr=False, compare=False)

    def leg(self, source: int, target: int) -> Leg:
        """Links from one node to another, neither a router; computed at first use and kept."""
        known = self.legs.get((source, target))
        if known is not None:
            return known
        at = self.seats[source]
        hops = [(self.link_between[source, at], 0)]
        for router, sublevel in self.layout.path(at, self.seats[target]):
            hops.append((self.link_between[at, router], sublevel))
            at = router
        hops.append((self.link_between[at, target], 0))
        leg = self.legs[source, target] = tuple(hops)
        return leg


def plan_layout(cube: CubeSpec) -> DieLayout:
    """The layout of a compute die, by the shape of its network."""
    match cube.noc:
        case MeshSpec():
            return plan_mesh_layout(cube, cube.noc)
        case RingSpec():
            return plan_ring_layout(cube, cube.noc)
        case CrossbarSpec():
            return plan_crossbar_layout(cube, cube.noc)
        case _:
            assert_never(cube.noc)


def build_die(spec: MachineSpec) -> DieTemplate:
    work = _DieDraft(spec, plan_layout(spec.cube))
    work.add_routers()
    connections = work.add_connections()
    work.add_terminals()
    pcie_ep = work.add_host_side() if spec.sip.io is None else None
    kinds = [node.kind for node in work.draft.nodes]
    between: dict[tuple[int, int], int] = {}
    for number, link in enumerate(work.draft.links):
        between[link.src, link.dst] = number
    return DieTemplate(
        layout=work.layout,
        nodes=tuple(work.nodes),
        links=tuple(work.draft.links),
        seats=MappingProxyType(work.seats),
        connections=MappingProxyType(connections),
        requesters=tuple(number for number, kind in enumerate(kinds) if kind.may_request),
        targets=tuple(number for number, kind in enumerate(kinds) if kind.is_terminal),
        pcie_ep=pcie_ep,
        link_between=MappingProxyType(between),
    )


class _DieDraft:
    """The template while it grows."""

    def __init__(self, spec: MachineSpec, layout: DieLayout) -> None:
        self.spec = spec
        self.cube = spec.cube
        self.layout = layout
        self.draft = Draft()
        self.nodes: list[DieNode] = []
        self.seats: dict[int, int] = {}
        self.attach_ps = wire_ps(layout.attach_um, ps_per_mm=spec.ps_per_mm)

    def _add(self, name: NodeName, latency_ps: int, buffer_bytes: int, at: tuple[int, int]) -> int:
        self.nodes.append(DieNode(name, latency_ps, buffer_bytes, at))
        return self.draft.add_node(
            name, latency_ps=latency_ps, buffer_bytes=buffer_bytes, position_um=at
        )

    def add_routers(self) -> None:
        noc = self.cube.noc
        for place in self.layout.routers:
            name = NodeName(
                place.kind, sip=0, cube=0, row=place.row, column=place.column, index=place.index
            )
            self._add(name, noc.router_ps, noc.buffer_bytes, place.position_um)
        for wire in self.layout.wires:
            delay_ps = wire_ps(wire.length_um, ps_per_mm=self.spec.ps_per_mm)
            self.draft.join(
                wire.one,
                wire.other,
                LinkKind.NETWORK,
                bytes_per_us=noc.bytes_per_us,
                wire_ps=delay_ps,
            )

    def add_connections(self) -> dict[Side, tuple[int, ...]]:
        ucie = self.cube.ucie
        connections: dict[Side, tuple[int, ...]] = {}
        for side, routers in self.layout.port_routers.items():
            numbers = []
            for index, router in enumerate(routers):
                name = NodeName(NodeKind.CONNECTION, sip=0, cube=0, side=side.value, index=index)
                x, y = self.layout.routers[router].position_um
                reach = self.layout.port_reach_um
                position = (x + side.step[0] * reach, y + side.step[1] * reach)
                if ucie is not None:
                    number = self._add(name, ucie.side_ps, ucie.buffer_bytes, position)
                    self._seat(number, router, self.cube.noc.bytes_per_us, LinkKind.CONNECTION)
                    numbers.append(number)
            connections[side] = tuple(numbers)
        return connections

    def add_terminals(self) -> None:
        cube, noc = self.cube, self.cube.noc
        for pe, router in enumerate(self.layout.pe_routers):
            for kind, buffer_bytes in (
                (NodeKind.PE_DMA, noc.buffer_bytes),
                (NodeKind.PE_CPU, self.spec.pe.cpu.buffer_bytes),
                (NodeKind.HBM_CTRL, cube.hbm.buffer_bytes),
            ):
                self._terminal(NodeName(kind, sip=0, cube=0, pe=pe), router, buffer_bytes)
        self._terminal(
            NodeName(NodeKind.M_CPU, sip=0, cube=0),
            self.layout.m_cpu_router,
            cube.m_cpu.buffer_bytes,
            position_um=cube.m_cpu_position_um,
        )
        self._terminal(
            NodeName(NodeKind.SRAM, sip=0, cube=0),
            self.layout.sram_router,
            cube.sram.buffer_bytes,
            latency_ps=cube.sram.access_ps,
            bytes_per_us=cube.sram.bytes_per_us,
            position_um=cube.sram_position_um,
        )

    def add_host_side(self) -> int:
        """Without an IO chiplet, endpoint and launch processor sit on the M_CPU's router."""
        pcie, router = self.spec.host.pcie, self.layout.m_cpu_router
        buffer_bytes = self.spec.sip.io_cpu.buffer_bytes
        self._terminal(NodeName(NodeKind.IO_CPU, sip=0), router, buffer_bytes)
        return self._terminal(
            NodeName(NodeKind.PCIE_EP, sip=0),
            router,
            pcie.buffer_bytes,
            latency_ps=pcie.endpoint_ps,
            bytes_per_us=pcie_bytes_per_us(pcie, flit_bytes=self.spec.flit_bytes),
        )

    def _terminal(
        self,
        name: NodeName,
        router: int,
        buffer_bytes: int,
        *,
        latency_ps: int = 0,
        bytes_per_us: int | None = None,
        position_um: tuple[int, int] | None = None,
    ) -> int:
        position = position_um or self.layout.routers[router].position_um
        number = self._add(name, latency_ps, buffer_bytes, position)
        rate = bytes_per_us or self.cube.noc.attach_bytes_per_us
        self._seat(number, router, rate, LinkKind.ATTACHMENT)
        return number

    def _seat(self, number: int, router: int, bytes_per_us: int, kind: LinkKind) -> None:
        self.seats[number] = router
        self.draft.join(number, router, kind, bytes_per_us=bytes_per_us, wire_ps=self.attach_ps)
