"""Warnings about a machine that works, but slower than its parts promise.

**Buffers.** Let a link have flit time ``c``, latency ``L`` and credit delay ``k``, and the link
that its packets of ``F`` flits go to next flit time ``d``. A packet that starts at 0 on idle links
has left the next link at ``L + max(c + F d, F c + d)``, or at ``L + F c + F d`` if that one
re-assembles; its credit is back ``k`` later. This is the round trip ``R``. A buffer of ``N``
packets lets ``N`` of them go per ``R``, while the slower of the two links could take one per
``F max(c, d)``. So ``N = ceil(R / (F max(c, d)))`` packets are needed, which is rate x (latencies
and credit) plus the packet itself. Buffers at the end of a route hold nobody up.

**Bytes in flight.** One read channel of a DMA that reads the farthest slice of its own cube should
get the full rate: needed is the least rate on the way back (or the slice's own) x the time of one
read on the idle machine: request of one flit, access to a closed bank, response of one packet. The
same for the host and the farthest slice of a SIP.

**Links.** Fabric links that the directions of the shape cannot share evenly stay unused.
"""

from collections.abc import Iterable, Iterator

from tilewright.machine.build import Machine
from tilewright.machine.name import NodeName, format_name
from tilewright.machine.node import Link, NodeKind, reverse_link
from tilewright.machine.route_level import Traffic
from tilewright.machine.route_time import zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us
from tilewright.units import PS_PER_US, flit_ps, format_bytes

__all__ = ("credit_round_trip_ps", "needed_buffer_bytes", "warnings_of")

_BUFFER_FIELDS = {
    NodeKind.ROUTER: "cube.noc.buffer_bytes",
    NodeKind.RING_ROUTER: "cube.noc.buffer_bytes",
    NodeKind.CROSSBAR: "cube.noc.buffer_bytes",
    NodeKind.CONNECTION: "cube.ucie.buffer_bytes",
    NodeKind.IO_CONNECTION: "cube.ucie.buffer_bytes",
    NodeKind.IO_NOC: "sip.io.buffer_bytes",
    NodeKind.PCIE_EP: "host.pcie.buffer_bytes",
    NodeKind.SIP_PORT: "fabric.buffer_bytes",
    NodeKind.SWITCH: "fabric.buffer_bytes",
}


def warnings_of(machine: Machine) -> tuple[str, ...]:
    """Each names the field, what was found and what is needed."""
    return (
        *_buffer_warnings(machine),
        *_in_flight_warnings(machine),
        *_fabric_warnings(machine),
    )


def credit_round_trip_ps(link: Link, following: Link, *, num_flits: int, flit_bytes: int) -> int:
    """From a packet's start on a link until its credit is back, with nothing else on the way."""
    cycle_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=link.bytes_per_us)
    next_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=following.bytes_per_us)
    if following.reassemble:
        through_ps = num_flits * (cycle_ps + next_ps)
    else:
        through_ps = max(cycle_ps + num_flits * next_ps, num_flits * cycle_ps + next_ps)
    return link.latency_ps + through_ps + link.credit_ps


def needed_buffer_bytes(link: Link, following: Link, *, packet_bytes: int, flit_bytes: int) -> int:
    """The least buffer behind a link with which the slower of the two never waits for credits."""
    num_flits = packet_bytes // flit_bytes
    rate = min(link.bytes_per_us, following.bytes_per_us)
    packet_ps = num_flits * flit_ps(flit_bytes=flit_bytes, bytes_per_us=rate)
    trip_ps = credit_round_trip_ps(link, following, num_flits=num_flits, flit_bytes=flit_bytes)
    return -(-trip_ps // packet_ps) * packet_bytes


def _buffer_warnings(machine: Machine) -> Iterator[str]:
    spec = machine.spec
    needed: dict[str, tuple[int, int, str]] = {}
    for number, following in _followings(machine):
        link = machine.links[number]
        field = _BUFFER_FIELDS[machine.nodes[link.dst].kind]
        least = needed_buffer_bytes(
            link,
            machine.links[following],
            packet_bytes=spec.packet_bytes,
            flit_bytes=spec.flit_bytes,
        )
        if least > needed.get(field, (0,))[0]:
            needed[field] = least, link.buffer_bytes, machine.link_name(number)
    for field, (least, found, name) in needed.items():
        if found // spec.packet_bytes * spec.packet_bytes < least:
            yield (
                f"{field}: found {format_bytes(found)}, needed {format_bytes(least)} for the full "
                f"rate of {name}: its rate x the credit's round trip + one packet"
            )


def _followings(machine: Machine) -> Iterator[tuple[int, int]]:
    """Links that follow each other on some way through a node; of equal pairs only the first."""
    inward: dict[int, list[int]] = {}
    signatures: dict[tuple[object, ...], int] = {}
    kind_of: list[int] = []
    for number, link in enumerate(machine.links):
        if machine.nodes[link.dst].kind in _BUFFER_FIELDS:
            inward.setdefault(link.dst, []).append(number)
        signature = (
            machine.nodes[link.dst].kind,
            link.bytes_per_us,
            link.latency_ps,
            link.credit_ps,
            link.reassemble,
        )
        kind_of.append(signatures.setdefault(signature, len(signatures)))
    seen: set[tuple[int, int]] = set()
    for arriving in inward.values():
        for number in arriving:
            for other in arriving:
                following = reverse_link(other)
                pair = kind_of[number], kind_of[following]
                if other != number and pair not in seen:
                    seen.add(pair)
                    yield number, following


def _in_flight_warnings(machine: Machine) -> Iterator[str]:
    spec, grid = machine.spec, machine.grid
    pes = range(grid.num_pes_per_cube)
    dmas = [_node(machine, NodeKind.PE_DMA, 0, pe) for pe in pes]
    slices = [_node(machine, NodeKind.HBM_CTRL, 0, pe) for pe in pes]
    own_cube = ((dma, target, pe) for pe, dma in enumerate(dmas) for target in slices)
    host = machine.host
    whole_sip = (
        (host, _node(machine, NodeKind.HBM_CTRL, cube, pe), pe)
        for cube in range(grid.num_cubes_per_sip)
        for pe in pes
    )
    dma, host_bytes = spec.pe.dma, spec.host.in_flight_bytes
    for field, channels, window, pairs, what in (
        ("pe.dma.in_flight_bytes", dma.read_channels, dma.in_flight_bytes, own_cube, "of a cube"),
        ("host.in_flight_bytes", 1, host_bytes, whole_sip, "of a SIP"),
    ):
        needed = max(_bytes_in_flight(machine, *pair) for pair in pairs)
        if channels * window < needed:
            found = f"{channels} x " * (channels > 1) + format_bytes(window)
            yield (
                f"{field}: found {found}, needed {format_bytes(needed)} for the full "
                f"rate from the farthest slice {what}: the rate x the time of one read"
            )


def _node(machine: Machine, kind: NodeKind, cube: int, pe: int) -> int:
    return machine.node_id(format_name(NodeName(kind, sip=0, cube=cube, pe=pe)))


def _bytes_in_flight(machine: Machine, source: int, target: int, spread: int) -> int:
    spec = machine.spec
    num_flits = spec.packet_bytes // spec.flit_bytes
    there = _links(machine, machine.route(source, target, Traffic.REQUEST, spread))
    back = _links(machine, machine.route(target, source, Traffic.RESPONSE, spread))
    read_ps = zero_load_ps(there, num_flits=1, flit_bytes=spec.flit_bytes)
    read_ps += _access_ps(machine)
    read_ps += zero_load_ps(back, num_flits=num_flits, flit_bytes=spec.flit_bytes)
    rate = min(slice_bytes_per_us(spec), *(link.bytes_per_us for link in back))
    return -(-rate * read_ps // PS_PER_US)


def _links(machine: Machine, route: Iterable[tuple[int, int]]) -> list[Link]:
    return [machine.links[link] for link, _ in route]


def _access_ps(machine: Machine) -> int:
    hbm = machine.spec.cube.hbm
    if hbm.model == "simple":
        return hbm.simple_latency_ps
    timing = hbm.timing
    clocks = timing.rcd_read_clocks + timing.cl_clocks + timing.bl_clocks
    return clocks * timing.clock_ps


def _fabric_warnings(machine: Machine) -> Iterator[str]:
    shape = machine.routes.topology.fabric.shape
    if shape is None:
        return
    links = machine.spec.fabric.links
    unused = links - shape.links_per_side * len(shape.sides)
    if unused:
        yield (
            f"fabric.links: found {links}, needed a multiple of {len(shape.sides)}, the directions "
            f"of the {machine.spec.fabric.kind}: {unused} of each SIP stay unused"
        )
