"""A link as a server of the engine: wires, routers, die-to-die ports, PCIe, switch and SIP links.

ADR 0005: a link is one server, and the node it leads to is a latency and an input buffer. So
routers, connections, the IO crossbar, the PCIe endpoint and the switch have no server of their own.
"""

from collections.abc import Callable

from tilewright.device.block import PacketBlock, build_service
from tilewright.engine import Arbitration, ServerSpec
from tilewright.machine.build import Machine
from tilewright.machine.node import Link, LinkKind, NodeKind
from tilewright.machine.spec import BlockSpec

Around = Callable[[int, PacketBlock], PacketBlock]
"""From a link and the user's block on it to what stands in its place, to listen for instance."""


def link_server(machine: Machine, link_id: int, around: Around | None = None) -> ServerSpec:
    """The server of a link, named by the nodes that it joins.

    A packet of F flits that finds it free holds it for F flits of ``ceil(flit_bytes / rate)`` each;
    its head arrives one flit and ``wire_ps + node_ps`` after the start. Inputs take turns. A packet
    starts only when it fits into the buffer behind; its credits come back ``credit_ps`` after it
    has left that buffer. A link that leaves a rate boundary takes a packet in whole first.

    A block of the user's decides hold and latency instead; ``around`` may put another in its place.
    """
    link = machine.links[link_id]
    name = machine.link_name(link_id)
    service = build_service(name, link_block(machine, link))
    if service is not None and around is not None:
        service = around(link_id, service)
    return ServerSpec(
        name,
        bytes_per_us=link.bytes_per_us,
        latency_ps=link.latency_ps,
        buffer_flits=link.buffer_bytes // machine.spec.flit_bytes,
        credit_ps=link.credit_ps,
        arbitration=Arbitration.ROUND_ROBIN,
        reassemble=link.reassemble,
        service=service,
    )


def link_block(machine: Machine, link: Link) -> BlockSpec:
    """The block of the spec whose ``impl`` replaces this link's behaviour."""
    spec = machine.spec
    ends = machine.nodes[link.src].kind, machine.nodes[link.dst].kind
    if spec.sip.io is not None and NodeKind.IO_NOC in ends:
        return spec.sip.io
    match link.kind:
        case LinkKind.NETWORK | LinkKind.ATTACHMENT | LinkKind.CONNECTION:
            return spec.cube.noc
        case LinkKind.DIE_TO_DIE:
            return spec.cube.noc if spec.cube.ucie is None else spec.cube.ucie
        case LinkKind.PCIE:
            return spec.host.pcie
        case LinkKind.FABRIC | LinkKind.SIP_PORT:
            return spec.fabric
