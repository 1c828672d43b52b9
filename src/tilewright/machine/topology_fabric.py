"""Joins the SIPs: ports of IO chiplets to a switch, or to each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.name import NodeName
from tilewright.machine.node import LinkKind, NodeKind, reverse_link
from tilewright.machine.route_fabric import FabricShape, fabric_hops, plan_fabric_shape
from tilewright.machine.spec import MachineSpec
from tilewright.machine.topology_draft import Draft
from tilewright.machine.topology_io import IoChiplet


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
