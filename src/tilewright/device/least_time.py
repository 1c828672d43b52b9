"""Least times of commands, accesses and messages: the latencies that lower bounds are made of.

All of them follow from the spec and the routes of a machine on which nothing waits and nothing
refreshes. A user's link keeps its rate and has no latency, and a user's memory takes no time, since
only the block knows them.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from tilewright.device.build import link_block
from tilewright.device.command import io_cpu_of
from tilewright.device.memory import first_access_ps
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import Link, LinkKind, NodeKind
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.machine.spec import HbmSpec
from tilewright.units import flit_ps, num_flits


@dataclass(frozen=True, slots=True)
class CommandTime:
    """Least times of a command on its way to a PE, and of the PE's answer."""

    there_ps: int  # from the host's submission until the PE may begin
    back_ps: int  # from the end of its programs until the host knows


@dataclass(frozen=True, slots=True)
class AccessTime:
    """Least times of an access of one byte: way to the memory, memory, way back."""

    out_ps: int
    memory_ps: int
    back_ps: int
    data_ps: int  # of ``memory_ps``: the data themselves

    @property
    def total_ps(self) -> int:
        return self.out_ps + self.memory_ps + self.back_ps


def least_link(machine: Machine, link_id: int) -> Link:
    """Return a link without the latency that a user's block may or may not have."""
    link = machine.links[link_id]
    if link_block(machine, link).impl is None:
        return link
    return link._replace(wire_ps=0, node_ps=0)


def way_ps(
    machine: Machine,
    source: int,
    target: int,
    traffic: Traffic,
    spread: int,
    num_bytes: int,
    *,
    is_least: bool = True,
) -> int:
    """Return the time of so many bytes from node to node by their route, without waiting.

    Of more than a packet only the first one counts, since packets follow each other on the way.
    Without ``is_least`` all bytes are one packet and users' links have the latency of the spec: a
    figure of cost models.
    """
    ids = [link for link, _ in machine.route(source, target, traffic, spread)]
    links = [least_link(machine, link) if is_least else machine.links[link] for link in ids]
    size = machine.spec.flit_bytes
    if is_least:
        num_bytes = min(num_bytes, machine.spec.packet_bytes)
    flits = num_flits(num_bytes, flit_bytes=size)
    return zero_load_ps(links, num_flits=flits, flit_bytes=size)


def open_access_ps(hbm: HbmSpec, *, is_write: bool) -> int:
    """Return the least time of any access to a slice: one burst of an open row."""
    return 0 if hbm.impl is not None else hbm.least_access_ps(is_write=is_write, opens=False)


def access_time(
    machine: Machine, pe: PeCoord, owner: PeCoord, *, is_write: bool, is_open: bool
) -> AccessTime:
    """Return the least times of a PE's access to the slice of another, or its own.

    ``is_open``: the row may have been opened for an earlier access.
    """
    hbm = machine.spec.cube.hbm
    dma, memory = machine.node_of(NodeKind.PE_DMA, pe), machine.node_of(NodeKind.HBM_CTRL, owner)
    memory_ps = open_access_ps(hbm, is_write=is_write)
    if not is_open and hbm.impl is None:
        memory_ps = first_access_ps(hbm, 1, is_write=is_write)
    is_simple = hbm.impl is not None or hbm.model == "simple"
    return AccessTime(
        way_ps(machine, dma, memory, Traffic.REQUEST, pe.pe, 1),
        memory_ps,
        way_ps(machine, memory, dma, Traffic.RESPONSE, pe.pe, 1),
        memory_ps - open_access_ps(hbm, is_write=is_write) if is_simple else hbm.burst_ps,
    )


def command_times(
    machine: Machine, pes: Iterable[PeCoord], *, is_least: bool = True
) -> dict[PeCoord, CommandTime]:
    """Return when each of these PEs has a command that goes to all of them, and its way back.

    Processors hand a command on to one after the other: an IO CPU to cubes, an M_CPU to PEs, in
    the order of coordinates (``device.command``). A command without entries is the shortest.
    """
    spec = machine.spec
    io_ps, m_ps, issue_ps = (
        item.command_ps for item in (spec.sip.io_cpu, spec.cube.m_cpu, spec.pe.cpu)
    )
    num_pes: dict[int, Counter[int]] = {}  # by SIP and cube: that have their command by now
    to_cube: dict[tuple[int, int], tuple[int, int]] = {}
    found = {}
    for pe in sorted(set(pes)):
        cubes = num_pes.setdefault(pe.sip, Counter())
        cubes[pe.cube] += 1
        m_cpu, cpu = (machine.node_of(kind, pe) for kind in (NodeKind.M_CPU, NodeKind.PE_CPU))
        if (pe.sip, pe.cube) not in to_cube:
            io_cpu = io_cpu_of(machine, pe.sip)
            outer = _both_ways_ps(machine, machine.host, io_cpu, 0, is_least=is_least)
            inner = _both_ways_ps(machine, io_cpu, m_cpu, 0, is_least=is_least)
            to_cube[pe.sip, pe.cube] = outer[0] + inner[0], outer[1] + inner[1]
        inside = _both_ways_ps(machine, m_cpu, cpu, pe.pe, is_least=is_least)
        ways = [sum(legs) for legs in zip(to_cube[pe.sip, pe.cube], inside, strict=True)]
        there_ps = ways[0] + len(cubes) * io_ps + cubes[pe.cube] * m_ps + issue_ps
        found[pe] = CommandTime(there_ps, ways[1] + issue_ps + m_ps + io_ps)
    return found


def _both_ways_ps(
    machine: Machine, source: int, target: int, spread: int, *, is_least: bool
) -> tuple[int, int]:
    """Return the time of a command from one node to another, and of an answer back."""
    size = machine.spec.host.command_bytes
    return (
        way_ps(machine, source, target, Traffic.REQUEST, spread, size, is_least=is_least),
        way_ps(machine, target, source, Traffic.RESPONSE, spread, size, is_least=is_least),
    )


def between_ps(machine: Machine, source: PeCoord, target: PeCoord) -> int:
    """Return the least time that a flit needs from the DMA of a PE to that of another.

    By any way there is, also one that no route takes, since messages may be passed on by PEs in
    between. Only the host passes nothing on.
    """
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (source, target))
    known = machine.routes.least_ps
    if start not in known:
        known[start] = _shortest_ways(machine, start)
    return known[start][end]


def _shortest_ways(machine: Machine, start: int) -> dict[int, int]:
    """Return the least time from a node to each that can be reached (Dijkstra)."""
    host = machine.host
    leaving: dict[int, list[tuple[int, int]]] = {}
    for number, link in enumerate(machine.links):
        if host not in (link.src, link.dst):
            step_ps = (
                flit_ps(flit_bytes=machine.spec.flit_bytes, bytes_per_us=link.bytes_per_us)
                + least_link(machine, number).latency_ps
            )
            leaving.setdefault(link.src, []).append((link.dst, step_ps))
    found: dict[int, int] = {}
    waiting = [(0, start)]
    while waiting:
        at_ps, node = heappop(waiting)
        if node in found:
            continue
        found[node] = at_ps
        for following, step_ps in leaving.get(node, ()):
            if following not in found:
                heappush(waiting, (at_ps + step_ps, following))
    return found


def fabric_ps(machine: Machine) -> int:
    """Return the least latency between two SIPs: one link, or two and the switch between them."""
    latencies: dict[bool, list[int]] = {True: [0], False: [0]}  # by whether it leaves the switch
    for number, link in enumerate(machine.links):
        if link.kind is LinkKind.FABRIC:
            leaves_switch = machine.nodes[link.src].kind is NodeKind.SWITCH
            latencies[leaves_switch].append(least_link(machine, number).latency_ps)
    return sum(min(of_kind[1:], default=0) for of_kind in latencies.values())
