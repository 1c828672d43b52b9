"""The whole machine as nodes and links, and the tables by which routes find them.

Nodes count: the host, the IO chiplets, the cubes, the switch. The nodes and links of a cube are
the template's, shifted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tilewright.machine.coords import Grid, Side
from tilewright.machine.node import (
    Link,
    LinkKind,
    Node,
    NodeKind,
    NodeName,
    format_name,
    reverse_link,
)
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.die import DieTemplate, build_die
from tilewright.machine.topology.draft import Draft
from tilewright.machine.topology.fabric import Fabric, build_fabric
from tilewright.machine.topology.io import IoChiplet, build_io
from tilewright.units import wire_ps

HOST = 0


@dataclass(frozen=True, slots=True)
class Topology:
    """Nodes and links by number, and where a route finds them."""

    grid: Grid
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    die: DieTemplate
    node_base: tuple[int, ...]  # of each cube
    link_base: tuple[int, ...]
    chiplets: tuple[IoChiplet, ...]  # of each SIP; empty: the die has the host link
    crossings: Mapping[tuple[int, Side], tuple[int, ...]]  # links that leave a cube, by its number
    host_links: tuple[int, ...]  # from the host, of each SIP
    endpoints: tuple[int, ...]  # PCIe endpoint of each SIP
    fabric: Fabric
    num_connections: int

    @property
    def host(self) -> int:
        return HOST

    def cube_of(self, node: int) -> int | None:
        """The cube, by number, whose die a node is on; None for IO chiplets, switch and host."""
        if not self.node_base[0] <= node < self.node_base[0] + self.num_cube_nodes:
            return None
        return (node - self.node_base[0]) // len(self.die.nodes)

    @property
    def num_cube_nodes(self) -> int:
        return len(self.node_base) * len(self.die.nodes)


def build_topology(spec: MachineSpec) -> Topology:
    grid = Grid(spec.sip.count, spec.sip.columns, spec.sip.rows, spec.cube.pes)
    draft = Draft()
    draft.add_node(NodeName(NodeKind.HOST), latency_ps=0, buffer_bytes=spec.host.pcie.buffer_bytes)
    chiplets = tuple(
        build_io(draft, spec, spec.sip.io, spec.cube.ucie, sip)
        for sip in range(grid.num_sips)
        if spec.sip.io is not None and spec.cube.ucie is not None
    )
    die = build_die(spec)
    node_base, link_base = _add_cubes(draft, grid, die)
    crossings = _join_cubes(draft, spec, grid, die, node_base, chiplets)
    endpoints = tuple(chiplet.pcie_ep for chiplet in chiplets)
    if die.pcie_ep is not None:
        endpoints = (node_base[0] + die.pcie_ep,)
    return Topology(
        grid=grid,
        host_links=_join_host(draft, spec, endpoints),
        fabric=build_fabric(draft, spec, chiplets),
        nodes=tuple(draft.nodes),
        links=tuple(draft.links),
        die=die,
        node_base=node_base,
        link_base=link_base,
        chiplets=chiplets,
        crossings=MappingProxyType(crossings),
        endpoints=endpoints,
        num_connections=spec.cube.ucie.connections if spec.cube.ucie else 1,
    )


def _add_cubes(
    draft: Draft, grid: Grid, die: DieTemplate
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    node_base, link_base = [], []
    for coord in grid.cubes():
        base = len(draft.nodes)
        node_base.append(base)
        link_base.append(len(draft.links))
        for node in die.nodes:
            cube = coord.cube if node.name.cube is not None else None
            name = replace(node.name, sip=coord.sip, cube=cube)
            draft.nodes.append(
                Node(
                    format_name(name),
                    name.kind,
                    node.latency_ps,
                    node.buffer_bytes,
                    node.position_um,
                    name.where,
                )
            )
        draft.links += [
            Link(
                link.src + base,
                link.dst + base,
                link.kind,
                link.bytes_per_us,
                link.wire_ps,
                link.node_ps,
                link.buffer_bytes,
                link.credit_ps,
                link.reassemble,
            )
            for link in die.links
        ]
    return tuple(node_base), tuple(link_base)


def _join_cubes(
    draft: Draft,
    spec: MachineSpec,
    grid: Grid,
    die: DieTemplate,
    node_base: tuple[int, ...],
    chiplets: tuple[IoChiplet, ...],
) -> dict[tuple[int, Side], tuple[int, ...]]:
    crossings: dict[tuple[int, Side], tuple[int, ...]] = {}
    ucie = spec.cube.ucie
    if ucie is None:
        return crossings

    def join(cube: int, side: Side, others: Iterable[int]) -> tuple[int, ...]:
        own = (node_base[cube] + local for local in die.connections[side])
        delay_ps = wire_ps(ucie.length_um, ps_per_mm=spec.ps_per_mm)
        rate = ucie.bytes_per_us
        return tuple(
            draft.join(one, other, LinkKind.DIE_TO_DIE, bytes_per_us=rate, wire_ps=delay_ps)
            for one, other in zip(own, others, strict=True)
        )

    for coord in grid.cubes():
        cube = grid.flat_cube(coord)
        for side in (Side.EAST, Side.SOUTH):
            neighbour = grid.neighbour(coord, side)
            if neighbour is not None:
                other = grid.flat_cube(neighbour)
                facing = die.connections[side.opposite]
                links = join(cube, side, (node_base[other] + local for local in facing))
                crossings[cube, side] = links
                crossings[other, side.opposite] = tuple(map(reverse_link, links))
        column, row = grid.cell(coord)
        if row == 0 and chiplets:
            facing = chiplets[coord.sip].connections[column]
            crossings[cube, Side.NORTH] = join(cube, Side.NORTH, facing)
    return crossings


def _join_host(draft: Draft, spec: MachineSpec, endpoints: tuple[int, ...]) -> tuple[int, ...]:
    pcie = spec.host.pcie
    delay_ps = wire_ps(pcie.length_um, ps_per_mm=spec.ps_per_mm)
    rate = pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes)
    return tuple(
        draft.join(HOST, endpoint, LinkKind.PCIE, bytes_per_us=rate, wire_ps=delay_ps)
        for endpoint in endpoints
    )
