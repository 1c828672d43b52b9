"""How SIPs are joined: IO chiplets, and the fabric from their ports to a switch or to each other.

An IO chiplet is a crossbar with the host link, the launch processor and all ports on it.

A packet goes along the row of SIPs, then along the column. In a ring or torus it takes the shorter
way of each dimension. Of two equal ways, even spreads go east or south and odd ones west or north.
On the wire that wraps around, and behind it in the same dimension, a packet is at level 1: no
packet wraps twice, so neither level closes a circle.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import lcm
from types import MappingProxyType

from tilewright.errors import SpecError
from tilewright.machine.coords import Side
from tilewright.machine.node import Draft, LinkKind, NodeKind, NodeName, reverse_link
from tilewright.machine.spec import FabricSpec, IoChipletSpec, MachineSpec, UcieSpec
from tilewright.machine.spec.network import pcie_bytes_per_us


@dataclass(frozen=True, slots=True)
class IoChiplet:
    """Numbers of its nodes; ``inward`` has the link of each of them to the crossbar."""

    pcie_ep: int
    io_cpu: int
    connections: tuple[tuple[int, ...], ...]  # of the port of each column of cubes
    ports: tuple[int, ...]  # to other SIPs
    inward: Mapping[int, int]


def build_io(
    draft: Draft, spec: MachineSpec, io: IoChipletSpec, ucie: UcieSpec, sip: int
) -> IoChiplet:
    """Each link of the crossbar has the rate of what it leads to."""
    pcie, fabric = spec.host.pcie, spec.fabric
    io_noc = draft.add_node(
        NodeName(NodeKind.IO_NOC, sip=sip, io=0), io.buffer_bytes, latency_ps=io.noc_ps
    )
    inward: dict[int, int] = {}

    def attach(name: NodeName, kind: LinkKind, rate: int, buffer_bytes: int, ps: int = 0) -> int:
        node = draft.add_node(name, buffer_bytes, latency_ps=ps)
        inward[node] = draft.join(node, io_noc, kind, rate, length_um=spec.cube.attach_um)
        return node

    def connection(port: int, index: int) -> int:
        name = NodeName(NodeKind.IO_CONNECTION, sip=sip, io=0, port=port, index=index)
        kind, rate = LinkKind.CONNECTION, ucie.bytes_per_us
        return attach(name, kind, rate, ucie.buffer_bytes, ucie.side_ps)

    def sip_port(index: int) -> int:
        name = NodeName(NodeKind.SIP_PORT, sip=sip, io=0, index=index)
        return attach(name, LinkKind.SIP_PORT, fabric.bytes_per_us, fabric.buffer_bytes)

    name, kind = NodeName(NodeKind.PCIE_EP, sip=sip, io=0), LinkKind.ATTACHMENT
    rate = pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes)
    pcie_ep = attach(name, kind, rate, pcie.buffer_bytes, pcie.endpoint_ps)
    name = NodeName(NodeKind.IO_CPU, sip=sip, io=0)
    io_cpu = attach(name, kind, io.attach_bytes_per_us, spec.sip.io_cpu.buffer_bytes)
    connections = tuple(
        tuple(connection(port, index) for index in range(ucie.connections))
        for port in range(spec.sip.columns)
    )
    num_ports = fabric.links if spec.sip.count > 1 else 0
    ports = tuple(sip_port(index) for index in range(num_ports))
    return IoChiplet(pcie_ep, io_cpu, connections, ports, MappingProxyType(inward))


@dataclass(frozen=True, slots=True)
class FabricShape:
    """SIPs in rows and columns; ``wraps``: the ends of each are joined too."""

    columns: int
    rows: int
    wraps: bool
    links: int  # of a SIP

    @property
    def sides(self) -> tuple[Side, ...]:
        """Directions in which a SIP has links; a dimension of one SIP has none."""
        row = (Side.EAST, Side.WEST) if self.columns > 1 else ()
        column = (Side.SOUTH, Side.NORTH) if self.rows > 1 else ()
        return row + column

    @property
    def links_per_side(self) -> int:
        """Parallel links of a direction."""
        return self.links // max(1, len(self.sides))

    @property
    def period(self) -> int:
        """Spreads that differ by this use the same links."""
        return 2 * self.links_per_side

    def port(self, side: Side, index: int) -> int:
        """Return the SIP's port for a link of a direction: links are dealt over the directions."""
        return index * len(self.sides) + self.sides.index(side)

    def neighbour(self, sip: int, side: Side) -> int | None:
        row, column = divmod(sip, self.columns)
        column, row = column + side.step[0], row + side.step[1]
        if self.wraps:
            return row % self.rows * self.columns + column % self.columns
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return row * self.columns + column if inside else None

    def ways(self, source: int, target: int, spread: int) -> Iterator[tuple[Side, int, int]]:
        """Yield direction, number of steps and parallel link along each dimension."""
        source_row, source_column = divmod(source, self.columns)
        target_row, target_column = divmod(target, self.columns)
        index = spread % self.links_per_side
        for up, down, distance, size in (
            (Side.EAST, Side.WEST, target_column - source_column, self.columns),
            (Side.SOUTH, Side.NORTH, target_row - source_row, self.rows),
        ):
            ahead = distance % size
            if not self.wraps:
                yield up if distance >= 0 else down, abs(distance), index
            elif 2 * ahead == size:
                yield (up, down)[spread % 2], ahead, spread // 2 % self.links_per_side
            elif 2 * ahead < size:
                yield up, ahead, index
            else:
                yield down, size - ahead, index


def plan_fabric_shape(fabric: FabricSpec, num_sips: int) -> FabricShape:
    """Return the rows and columns of SIPs; a switch has none."""
    columns = num_sips
    if fabric.kind in ("torus", "mesh") and fabric.columns is not None:
        columns = fabric.columns
    shape = FabricShape(columns, num_sips // columns, fabric.kind != "mesh", fabric.links)
    num_sides = len(shape.sides)
    if fabric.links < num_sides:
        found = f"{fabric.links} links a SIP"
        expected = f"at least {num_sides}, one for each direction of the {fabric.kind}"
        raise SpecError("fabric.links", found, expected, "add links or choose another fabric.kind")
    return shape


@dataclass(frozen=True, slots=True)
class FabricStep:
    """From a port of one SIP to a port of another: the wires between, and their level."""

    out_port: int
    wires: tuple[int, ...]
    in_port: int
    level: int


@dataclass(frozen=True, slots=True)
class Fabric:
    """The wires; ``shape`` is None with a switch."""

    shape: FabricShape | None
    ports: tuple[tuple[int, ...], ...]  # of each SIP
    uplinks: tuple[tuple[int, ...], ...]  # port to switch, of each SIP
    wires: Mapping[tuple[int, Side, int], int]  # link that leaves a SIP, by direction and index

    @property
    def period(self) -> int:
        """Spreads that differ by this use the same links."""
        if self.shape is not None:
            return self.shape.period
        return lcm(*(len(uplinks) for uplinks in self.uplinks)) if self.uplinks else 1

    def steps(self, source: int, target: int, spread: int) -> tuple[FabricStep, ...]:
        """Return the way from port to port, SIP after SIP; ``spread`` picks parallel links."""
        if source == target:
            return ()
        ports, shape = self.ports, self.shape
        if shape is None:
            index = spread % len(self.uplinks[source])
            wires = (self.uplinks[source][index], reverse_link(self.uplinks[target][index]))
            return (FabricStep(ports[source][index], wires, ports[target][index], 0),)
        steps: list[FabricStep] = []
        at = source
        for side, num_steps, index in shape.ways(source, target, spread):
            level = 0
            for _ in range(num_steps):
                following = shape.neighbour(at, side)
                if following is None:
                    found, fix = f"no SIP {side.name.lower()} of {at}", "route inside the mesh"
                    raise SpecError("fabric", found, "a neighbour", fix)
                # SIPs count up to the east and the south, else the wire wraps around
                if (following < at) == (side in (Side.EAST, Side.SOUTH)):
                    level = 1
                out_port = ports[at][shape.port(side, index)]
                in_port = ports[following][shape.port(side.opposite, index)]
                steps.append(FabricStep(out_port, (self.wires[at, side, index],), in_port, level))
                at = following
        return tuple(steps)


def build_fabric(draft: Draft, spec: MachineSpec, chiplets: tuple[IoChiplet, ...]) -> Fabric:
    fabric, ports = spec.fabric, tuple(chiplet.ports for chiplet in chiplets)
    shape: FabricShape | None = None
    uplinks: tuple[tuple[int, ...], ...] = ()
    wires: dict[tuple[int, Side, int], int] = {}

    def join(one: int, other: int) -> int:
        rate, latency_ps = fabric.bytes_per_us, fabric.latency_ps
        return draft.join(one, other, LinkKind.FABRIC, rate, latency_ps=latency_ps)

    if len(chiplets) > 1 and fabric.kind == "switch":
        name = NodeName(NodeKind.SWITCH, index=0)
        switch = draft.add_node(name, fabric.buffer_bytes, latency_ps=fabric.switch_ps)
        uplinks = tuple(tuple(join(port, switch) for port in of_sip) for of_sip in ports)
    elif len(chiplets) > 1:
        shape = plan_fabric_shape(fabric, spec.sip.count)
        for sip, side in product(range(len(ports)), shape.sides):
            other = shape.neighbour(sip, side)
            if side not in (Side.EAST, Side.SOUTH) or other is None:
                continue
            for index in range(shape.links_per_side):
                near = ports[sip][shape.port(side, index)]
                link = join(near, ports[other][shape.port(side.opposite, index)])
                wires[sip, side, index] = link
                wires[other, side.opposite, index] = reverse_link(link)
    return Fabric(shape, ports, uplinks, MappingProxyType(wires))
