"""The whole machine as nodes and links, and the tables by which routes find them.

Nodes count: the host, the IO chiplets, the cubes, the switch. The nodes and links of a cube are
the template's, shifted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.machine.coords import CubeCoord, Grid, PeCoord, Side
from tilewright.machine.node import (
    Draft,
    Link,
    LinkKind,
    Node,
    NodeKind,
    NodeName,
    place_name,
    reverse_link,
)
from tilewright.machine.spec import MachineSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.die import DieTemplate, build_die
from tilewright.machine.topology.fabric import Fabric, IoChiplet, build_fabric, build_io

HOST = 0
FIRST_CUBE = place_name(CubeCoord(0, 0))  # what names of the template begin with


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

    def cube_of(self, node: int) -> int | None:
        """The cube, by number, whose die a node is on; None for IO chiplets, switch and host."""
        cube = (node - self.node_base[0]) // len(self.die.nodes)
        return cube if 0 <= cube < len(self.node_base) else None


def build_topology(spec: MachineSpec) -> Topology:
    grid = Grid(spec.sip.count, spec.sip.columns, spec.sip.rows, spec.cube.pes)
    draft = Draft(spec.ps_per_mm)
    draft.add_node(NodeName(NodeKind.HOST), spec.host.pcie.buffer_bytes)
    chiplets = tuple(
        build_io(draft, spec, spec.sip.io, spec.cube.ucie, sip)
        for sip in range(grid.num_sips)
        if spec.sip.io is not None and spec.cube.ucie is not None
    )
    die = build_die(spec)
    node_base, link_base = _add_cubes(draft, grid, die)
    crossings = _join_cubes(draft, spec, grid, die, node_base, chiplets)
    pcie = spec.host.pcie
    rate = pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes)
    endpoints = tuple(chiplet.pcie_ep for chiplet in chiplets)
    if die.pcie_ep is not None:
        endpoints = (node_base[0] + die.pcie_ep,)
    return Topology(
        grid=grid,
        host_links=tuple(
            draft.join(HOST, endpoint, LinkKind.PCIE, rate, length_um=pcie.length_um)
            for endpoint in endpoints
        ),
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
    """Add the nodes and links of every cube; return the first number of each."""
    node_base, link_base = [], []
    for coord in grid.cubes():
        base, name = len(draft.nodes), place_name(coord)
        node_base.append(base)
        link_base.append(len(draft.links))
        for node in die.nodes:
            where = node.where
            if isinstance(where, PeCoord):
                where = PeCoord(coord.sip, coord.cube, where.pe)
            elif isinstance(where, CubeCoord):
                where = coord
            draft.nodes.append(
                node._replace(name=node.name.replace(FIRST_CUBE, name, 1), where=where)
            )
        draft.links += [
            link._replace(src=link.src + base, dst=link.dst + base) for link in die.links
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

    def port(cube: int, side: Side) -> list[int]:
        return [node_base[cube] + local for local in die.connections[side]]

    def join(ones: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
        rate, length_um = ucie.bytes_per_us, ucie.length_um
        return tuple(
            draft.join(one, other, LinkKind.DIE_TO_DIE, rate, length_um=length_um)
            for one, other in zip(ones, others, strict=True)
        )

    for coord in grid.cubes():
        cube = grid.flat_cube(coord)
        for side in (Side.EAST, Side.SOUTH):
            neighbour = grid.neighbour(coord, side)
            if neighbour is not None:
                other = grid.flat_cube(neighbour)
                links = join(port(cube, side), port(other, side.opposite))
                crossings[cube, side] = links
                crossings[other, side.opposite] = tuple(map(reverse_link, links))
        column, row = grid.cell(coord)
        if row == 0 and chiplets:
            facing = chiplets[coord.sip].connections[column]
            crossings[cube, Side.NORTH] = join(port(cube, Side.NORTH), facing)
    return crossings
