"""One IO chiplet: a crossbar with the host link, the launch processor and all ports on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.machine.name import NodeName
from tilewright.machine.node import LinkKind, NodeKind
from tilewright.machine.spec import IoChipletSpec, MachineSpec, UcieSpec
from tilewright.machine.topology_draft import Draft, wire_ps
from tilewright.machine.topology_pcie import pcie_bytes_per_us

__all__ = ("IoChiplet", "build_io")


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

    def attach(
        name: NodeName, latency_ps: int, buffer_bytes: int, kind: LinkKind, bytes_per_us: int
    ) -> int:
        node = draft.add_node(name, latency_ps=latency_ps, buffer_bytes=buffer_bytes)
        inward[node] = draft.join(node, io_noc, kind, bytes_per_us=bytes_per_us, wire_ps=delay_ps)
        return node

    def connection(port: int, index: int) -> int:
        name = NodeName(NodeKind.IO_CONNECTION, sip=sip, io=0, port=port, index=index)
        return attach(name, ucie.side_ps, ucie.buffer_bytes, LinkKind.CONNECTION, ucie.bytes_per_us)

    def sip_port(index: int) -> int:
        name = NodeName(NodeKind.SIP_PORT, sip=sip, io=0, index=index)
        return attach(name, 0, fabric.buffer_bytes, LinkKind.SIP_PORT, fabric.bytes_per_us)

    pcie_ep = attach(
        NodeName(NodeKind.PCIE_EP, sip=sip, io=0),
        pcie.endpoint_ps,
        pcie.buffer_bytes,
        LinkKind.ATTACHMENT,
        pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes),
    )
    io_cpu = attach(
        NodeName(NodeKind.IO_CPU, sip=sip, io=0),
        0,
        io.cpu.buffer_bytes,
        LinkKind.ATTACHMENT,
        io.attach_bytes_per_us,
    )
    connections = tuple(
        tuple(connection(port, index) for index in range(ucie.connections))
        for port in range(spec.sip.columns)
    )
    num_ports = fabric.links if spec.sip.count > 1 else 0
    ports = tuple(sip_port(index) for index in range(num_ports))
    return IoChiplet(io_noc, pcie_ep, io_cpu, connections, ports, MappingProxyType(inward))
