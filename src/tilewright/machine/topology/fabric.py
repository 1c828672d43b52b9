"""The fabric: ports of IO chiplets joined to a switch or to each other, and its turn rule.

A packet goes along the row of SIPs, then along the column. In a ring or torus it takes the shorter
way of each dimension. Of two equal ways, even spreads go east or south and odd ones west or north.
On the wire that wraps around, and behind it in the same dimension, a packet is at level 1: no
packet wraps twice, so neither level closes a circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from types import MappingProxyType

from tilewright.errors import SpecError
from tilewright.machine.coords import Side
from tilewright.machine.node import LinkKind, NodeKind, NodeName, reverse_link
from tilewright.machine.spec import FabricSpec, MachineSpec
from tilewright.machine.topology.draft import Draft
from tilewright.machine.topology.io import IoChiplet


@dataclass(frozen=True, slots=True)
class FabricShape:
    """SIPs in rows and columns; ``wraps``: the ends of each are joined too."""

    columns: int
    rows: int
    wraps: bool
    links_per_side: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """Directions in which a SIP has links; a dimension of one SIP has none."""
        row = (Side.EAST, Side.WEST) if self.columns > 1 else ()
        column = (Side.SOUTH, Side.NORTH) if self.rows > 1 else ()
        return row + column

    def port(self, side: Side, index: int) -> int:
        """The SIP's port for a link of a direction: links are dealt over the directions."""
        return index * len(self.sides) + self.sides.index(side)

    def neighbour(self, sip: int, side: Side) -> int | None:
        row, column = divmod(sip, self.columns)
        column, row = column + side.step[0], row + side.step[1]
        if self.wraps:
            return row % self.rows * self.columns + column % self.columns
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return row * self.columns + column if inside else None

    @property
    def period(self) -> int:
        """Spreads that differ by this use the same links."""
        return 2 * self.links_per_side


@dataclass(frozen=True, slots=True)
class FabricHop:
    """One wire between two SIPs: whose, in which direction, which of the parallel ones."""

    sip: int
    side: Side
    index: int
    level: int


def plan_fabric_shape(fabric: FabricSpec, num_sips: int) -> FabricShape:
    """Rows and columns of SIPs; a switch has none."""
    columns = num_sips
    if fabric.kind in ("torus", "mesh") and fabric.columns is not None:
        columns = fabric.columns
    shape = FabricShape(columns, num_sips // columns, fabric.kind != "mesh", 0)
    num_sides = len(shape.sides)
    if fabric.links < num_sides:
        found = f"{fabric.links} links a SIP"
        expected = f"at least {num_sides}, one for each direction of the {fabric.kind}"
        raise SpecError("fabric.links", found, expected, "add links or choose another fabric.kind")
    return FabricShape(shape.columns, shape.rows, shape.wraps, fabric.links // max(1, num_sides))


def fabric_hops(shape: FabricShape, source: int, target: int, spread: int) -> tuple[FabricHop, ...]:
    """Wires from SIP to SIP; parallel links are chosen by ``spread``."""
    source_row, source_column = divmod(source, shape.columns)
    target_row, target_column = divmod(target, shape.columns)
    at = source
    hops: list[FabricHop] = []
    for sides, first, last, size in (
        ((Side.EAST, Side.WEST), source_column, target_column, shape.columns),
        ((Side.SOUTH, Side.NORTH), source_row, target_row, shape.rows),
    ):
        side, num_steps, index = _choose(shape, sides, (last - first) % size, last - first, spread)
        level = 0
        for _ in range(num_steps):
            following = _following(shape, at, side)
            if _wraps(at, following, side):
                level = 1
            hops.append(FabricHop(at, side, index, level))
            at = following
    return tuple(hops)


def _choose(
    shape: FabricShape, sides: tuple[Side, Side], ahead: int, distance: int, spread: int
) -> tuple[Side, int, int]:
    """Direction, number of steps and parallel link along one dimension."""
    size = shape.columns if sides[0] is Side.EAST else shape.rows
    up, down = sides
    index = spread % shape.links_per_side
    if not shape.wraps:
        return (up if distance >= 0 else down), abs(distance), index
    if 2 * ahead == size:
        return sides[spread % 2], ahead, spread // 2 % shape.links_per_side
    if 2 * ahead < size:
        return up, ahead, index
    return down, size - ahead, index


def _following(shape: FabricShape, sip: int, side: Side) -> int:
    following = shape.neighbour(sip, side)
    if following is None:
        fix = "route inside the mesh"
        raise SpecError("fabric", f"no SIP {side.name.lower()} of {sip}", "a neighbour", fix)
    return following


def _wraps(sip: int, following: int, side: Side) -> bool:
    """SIPs count up to the east and the south; going that way to a lower number is a wrap."""
    return following < sip if side in (Side.EAST, Side.SOUTH) else following > sip


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
        """Port to port, SIP after SIP."""
        if source == target:
            return ()
        if self.shape is None:
            index = spread % len(self.uplinks[source])
            wires = (self.uplinks[source][index], reverse_link(self.uplinks[target][index]))
            ports = self.ports
            return (FabricStep(ports[source][index], wires, ports[target][index], 0),)
        steps = []
        for hop in fabric_hops(self.shape, source, target, spread):
            following = self.shape.neighbour(hop.sip, hop.side)
            if following is not None:
                out_port = self.ports[hop.sip][self.shape.port(hop.side, hop.index)]
                opposite = self.shape.port(hop.side.opposite, hop.index)
                wire = self.wires[hop.sip, hop.side, hop.index]
                in_port = self.ports[following][opposite]
                steps.append(FabricStep(out_port, (wire,), in_port, hop.level))
        return tuple(steps)


def build_fabric(draft: Draft, spec: MachineSpec, chiplets: tuple[IoChiplet, ...]) -> Fabric:
    ports = tuple(chiplet.ports for chiplet in chiplets)
    if len(chiplets) < 2:
        return Fabric(None, ports, (), MappingProxyType({}))
    if spec.fabric.kind == "switch":
        return Fabric(None, ports, _join_to_switch(draft, spec, ports), MappingProxyType({}))
    shape = plan_fabric_shape(spec.fabric, spec.sip.count)
    wires = _join_neighbours(draft, spec, shape, ports)
    return Fabric(shape, ports, (), MappingProxyType(wires))


def _join_to_switch(
    draft: Draft, spec: MachineSpec, ports: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    switch = draft.add_node(
        NodeName(NodeKind.SWITCH, index=0),
        latency_ps=spec.fabric.switch_ps,
        buffer_bytes=spec.fabric.buffer_bytes,
    )
    return tuple(
        tuple(_join(draft, spec, port, switch) for port in ports_of_sip) for ports_of_sip in ports
    )


def _join_neighbours(
    draft: Draft, spec: MachineSpec, shape: FabricShape, ports: tuple[tuple[int, ...], ...]
) -> dict[tuple[int, Side, int], int]:
    wires: dict[tuple[int, Side, int], int] = {}
    for sip in range(len(ports)):
        for side in shape.sides:
            other = shape.neighbour(sip, side)
            if side not in (Side.EAST, Side.SOUTH) or other is None:
                continue
            for index in range(shape.links_per_side):
                near = ports[sip][shape.port(side, index)]
                far = ports[other][shape.port(side.opposite, index)]
                link = _join(draft, spec, near, far)
                wires[sip, side, index] = link
                wires[other, side.opposite, index] = reverse_link(link)
    return wires


def _join(draft: Draft, spec: MachineSpec, one: int, other: int) -> int:
    fabric = spec.fabric
    return draft.join(
        one,
        other,
        LinkKind.FABRIC,
        bytes_per_us=fabric.bytes_per_us,
        wire_ps=fabric.latency_ps,
    )
