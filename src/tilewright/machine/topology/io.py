"""One IO chiplet: a crossbar with the host link, the launch processor and all ports on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.machine.node import LinkKind, NodeKind, NodeName
from tilewright.machine.spec import IoChipletSpec, MachineSpec, UcieSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.draft import Draft
from tilewright.units import wire_ps


@dataclass(frozen=True, slots=True)
class IoChiplet:
    """Numbers of its nodes; ``inward`` has the link of each of them to the crossbar."""

    io_noc: int
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
        NodeName(NodeKind.IO_NOC, sip=sip, io=0),
        latency_ps=io.noc_ps,
        buffer_bytes=io.buffer_bytes,
    )
    delay_ps = wire_ps(spec.cube.attach_um, ps_per_mm=spec.ps_per_mm)
    inward: dict[int, int] = {}

    def attach(node: int, kind: LinkKind, bytes_per_us: int) -> int:
        inward[node] = draft.join(node, io_noc, kind, bytes_per_us=bytes_per_us, wire_ps=delay_ps)
        return node

    def connection(port: int, index: int) -> int:
        name = NodeName(NodeKind.IO_CONNECTION, sip=sip, io=0, port=port, index=index)
        node = draft.add_node(name, latency_ps=ucie.side_ps, buffer_bytes=ucie.buffer_bytes)
        return attach(node, LinkKind.CONNECTION, ucie.bytes_per_us)

    def sip_port(index: int) -> int:
        name = NodeName(NodeKind.SIP_PORT, sip=sip, io=0, index=index)
        node = draft.add_node(name, latency_ps=0, buffer_bytes=fabric.buffer_bytes)
        return attach(node, LinkKind.SIP_PORT, fabric.bytes_per_us)

    name = NodeName(NodeKind.PCIE_EP, sip=sip, io=0)
    node = draft.add_node(name, latency_ps=pcie.endpoint_ps, buffer_bytes=pcie.buffer_bytes)
    rate = pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes)
    pcie_ep = attach(node, LinkKind.ATTACHMENT, rate)
    name = NodeName(NodeKind.IO_CPU, sip=sip, io=0)
    node = draft.add_node(name, latency_ps=0, buffer_bytes=spec.sip.io_cpu.buffer_bytes)
    io_cpu = attach(node, LinkKind.ATTACHMENT, io.attach_bytes_per_us)
    columns, num_ports = range(spec.sip.columns), fabric.links if spec.sip.count > 1 else 0
    connections = tuple(
        tuple(connection(port, index) for index in range(ucie.connections)) for port in columns
    )
    ports = tuple(sip_port(index) for index in range(num_ports))
    return IoChiplet(io_noc, pcie_ep, io_cpu, connections, ports, MappingProxyType(inward))
