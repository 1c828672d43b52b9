"""What a launch and a message cost on an idle machine, from its spec: figures of the cost model."""

from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route_level import Traffic
from tilewright.machine.route_time import zero_load_ps

__all__ = ("launch_ps", "message_ps")


def launch_ps(machine: Machine, pe: PeCoord) -> int:
    """Dispatch of a command from the host to a PE, and its completion back; no work in between."""
    spec = machine.spec
    io_cpu = next(
        number
        for number, node in enumerate(machine.nodes)
        if node.kind is NodeKind.IO_CPU and node.where == SipCoord(pe.sip)
    )
    m_cpu, pe_cpu = (machine.node_of(kind, pe) for kind in (NodeKind.M_CPU, NodeKind.PE_CPU))
    ways = ((machine.host, io_cpu, 0), (io_cpu, m_cpu, 0), (m_cpu, pe_cpu, pe.pe))
    num_bytes = spec.host.command_bytes
    on_links = sum(
        _way_ps(machine, source, target, Traffic.REQUEST, spread, num_bytes)
        + _way_ps(machine, target, source, Traffic.RESPONSE, spread, num_bytes)
        for source, target, spread in ways
    )
    processors = (spec.sip.io_cpu, spec.cube.m_cpu, spec.pe.cpu)
    return on_links + 2 * sum(item.command_ps for item in processors)


def message_ps(machine: Machine, source: PeCoord, target: PeCoord, num_bytes: int) -> int:
    """A message between the DMA channels of two PEs, with the commands that send and receive it."""
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (source, target))
    on_links = _way_ps(machine, start, end, Traffic.COMMUNICATION, source.pe, num_bytes)
    return on_links + 2 * (machine.spec.pe.cpu.command_ps + machine.spec.pe.scheduler.command_ps)


def _way_ps(
    machine: Machine, source: int, target: int, traffic: Traffic, spread: int, num_bytes: int
) -> int:
    flit_bytes = machine.spec.flit_bytes
    links = [machine.links[link] for link, _ in machine.route(source, target, traffic, spread)]
    return zero_load_ps(links, num_flits=-(-num_bytes // flit_bytes), flit_bytes=flit_bytes)
