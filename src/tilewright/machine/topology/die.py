"""One compute die as a template: all cubes of a machine are alike, so it is made once.

Numbers of nodes and links are local here; ``topology`` shifts them for every cube.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never

from tilewright.machine.coords import Side
from tilewright.machine.node import Draft, Link, LinkKind, Node, NodeKind, NodeName
from tilewright.machine.spec import CrossbarSpec, CubeSpec, MachineSpec, MeshSpec, RingSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.layout import (
    DieLayout,
    plan_crossbar_layout,
    plan_mesh_layout,
    plan_ring_layout,
)

Leg = tuple[tuple[int, int], ...]
"""Links through one die, each with the sublevel of its channel."""


@dataclass(frozen=True, slots=True)
class DieTemplate:
    """Nodes and links of one die, and the way between any two nodes that sit on its routers."""

    layout: DieLayout
    nodes: tuple[Node, ...]  # named as those of the first cube
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
    die = _DieDraft(spec)
    die.add_routers()
    connections = die.add_connections()
    die.add_terminals()
    pcie_ep = die.add_host_side() if spec.sip.io is None else None
    nodes, links = die.draft.nodes, die.draft.links
    between = {(link.src, link.dst): number for number, link in enumerate(links)}
    return DieTemplate(
        layout=die.layout,
        nodes=tuple(nodes),
        links=tuple(links),
        seats=MappingProxyType(die.seats),
        connections=MappingProxyType(connections),
        requesters=tuple(number for number, node in enumerate(nodes) if node.kind.may_request),
        targets=tuple(number for number, node in enumerate(nodes) if node.kind.is_terminal),
        pcie_ep=pcie_ep,
        link_between=MappingProxyType(between),
    )


class _DieDraft:
    """The template while it grows."""

    def __init__(self, spec: MachineSpec) -> None:
        self.spec = spec
        self.layout = plan_layout(spec.cube)
        self.draft = Draft(spec.ps_per_mm)
        self.seats: dict[int, int] = {}

    def add_routers(self) -> None:
        noc = self.spec.cube.noc
        for router in self.layout.routers:
            self.draft.add_node(
                router.name,
                noc.buffer_bytes,
                latency_ps=noc.router_ps,
                position_um=router.position_um,
            )
        rate, length_um = noc.bytes_per_us, self.layout.wire_um
        for ends in self.layout.wires:
            self.draft.join(*ends, LinkKind.NETWORK, rate, length_um=length_um)

    def add_connections(self) -> dict[Side, tuple[int, ...]]:
        """Add the connections of all ports; return their numbers by side."""
        ucie, reach = self.spec.cube.ucie, self.layout.port_reach_um
        if ucie is None:
            return {}
        connections: dict[Side, tuple[int, ...]] = {}
        for side, routers in self.layout.port_routers.items():
            right, down = side.step
            numbers = []
            for index, router in enumerate(routers):
                name = NodeName(NodeKind.CONNECTION, sip=0, cube=0, side=side.value, index=index)
                x, y = self.layout.routers[router].position_um
                number = self.draft.add_node(
                    name,
                    ucie.buffer_bytes,
                    latency_ps=ucie.side_ps,
                    position_um=(x + right * reach, y + down * reach),
                )
                rate = self.spec.cube.noc.bytes_per_us
                numbers.append(self._seat(number, router, rate, LinkKind.CONNECTION))
            connections[side] = tuple(numbers)
        return connections

    def add_terminals(self) -> None:
        cube, layout = self.spec.cube, self.layout
        for pe, router in enumerate(layout.pe_routers):
            for kind, buffer_bytes in (
                (NodeKind.PE_DMA, cube.noc.buffer_bytes),
                (NodeKind.PE_CPU, self.spec.pe.cpu.buffer_bytes),
                (NodeKind.HBM_CTRL, cube.hbm.buffer_bytes),
            ):
                self._terminal(NodeName(kind, sip=0, cube=0, pe=pe), router, buffer_bytes)
        self._terminal(
            NodeName(NodeKind.M_CPU, sip=0, cube=0),
            layout.m_cpu_router,
            cube.m_cpu.buffer_bytes,
            position_um=cube.m_cpu_position_um,
        )
        self._terminal(
            NodeName(NodeKind.SRAM, sip=0, cube=0),
            layout.sram_router,
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
        number = self.draft.add_node(
            name, buffer_bytes, latency_ps=latency_ps, position_um=position
        )
        rate = bytes_per_us or self.spec.cube.noc.attach_bytes_per_us
        return self._seat(number, router, rate, LinkKind.ATTACHMENT)

    def _seat(self, number: int, router: int, bytes_per_us: int, kind: LinkKind) -> int:
        self.seats[number] = router
        self.draft.join(number, router, kind, bytes_per_us, length_um=self.layout.attach_um)
        return number
