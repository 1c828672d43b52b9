"""Warnings about a machine that works, but slower than its parts promise.

**Buffers.** Let a link have flit time ``c``, latency ``L`` and credit delay ``k``, and the link
that its packets of ``F`` flits go to next flit time ``d``. A packet that starts at 0 on idle links
has left the next link at ``L + max(c + F d, F c + d)``, or at ``L + F c + F d`` if that one
re-assembles; its credit is back ``k`` later. This is the round trip ``R``. A buffer of ``N``
packets lets ``N`` of them go per ``R``, while the slower of the two links could take one per
``F max(c, d)``. So ``N = ceil(R / (F max(c, d)))`` packets are needed, which is rate x (latencies
and credit) plus the packet itself. A memory behind a link takes a packet when it is there as a
whole, so ``R = L + F c + k``. Buffers at other ends of a route hold nobody up.

**Bytes in flight.** The read channels of a DMA that reads the farthest slice of its own cube should
get the full rate together, and so should its write channels: needed is the least rate on the way of
the data (or the slice's own) x the time of one access on the idle machine: request, access to a
closed bank, response, one of them a packet and the other a flit. The same for the host and the
farthest slice of a SIP.

**Queues.** A burst waits in the queue of its pseudo-channel while its bank is opened. Needed are
the bursts that the data bus moves meanwhile, and those that one packet brings.

**Links.** Fabric links that the directions of the shape cannot share evenly stay unused.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.coords import PeCoord
from tilewright.machine.field import buffer_field
from tilewright.machine.file.explain import unused_keys
from tilewright.machine.node import Link, NodeKind, reverse_link
from tilewright.machine.parse import load_machine_document, machine_of_document
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.machine.totals import slice_bytes_per_us
from tilewright.records import MachineCheckRecord
from tilewright.units import PS_PER_US, flit_ps, format_bytes


def check_machine_file(source: str | Path, overrides: Sequence[str] = ()) -> MachineCheckRecord:
    """Return the verdict on a machine that runs; raise SpecError with the line for any other."""
    document = load_machine_document(source, overrides)
    machine = machine_of_document(document)
    spec = machine.spec
    return MachineCheckRecord(
        source=str(source),
        overrides=tuple(overrides),
        machine=spec.name,
        machine_hash=machine_hash(spec),
        num_pes=spec.sip.count * spec.sip.num_cubes * spec.cube.pes,
        warnings=(*unused_keys(document, spec), *warnings_of(machine)),
    )


def warnings_of(machine: Machine) -> tuple[str, ...]:
    """Return warnings, each with the field, what was found and what is needed."""
    return (
        *_buffer_warnings(machine),
        *_in_flight_warnings(machine),
        *_queue_warnings(machine),
        *_fabric_warnings(machine),
    )


def credit_round_trip_ps(
    link: Link, following: Link | None, *, num_flits: int, flit_bytes: int
) -> int:
    """Return the time from a packet's start on a link until its credit is back.

    Nothing else is on the way. Without a following link the packet ends at a memory.
    """
    cycle_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=link.bytes_per_us)
    through_ps = num_flits * cycle_ps
    if following is not None:
        next_ps = flit_ps(flit_bytes=flit_bytes, bytes_per_us=following.bytes_per_us)
        if following.reassemble:
            through_ps += num_flits * next_ps
        else:
            through_ps = max(cycle_ps + num_flits * next_ps, through_ps + next_ps)
    return link.latency_ps + through_ps + link.credit_ps


def needed_buffer_bytes(
    link: Link, following: Link | None, *, packet_bytes: int, flit_bytes: int
) -> int:
    """Return the least buffer behind a link with which the slower never waits for credits."""
    num_flits = packet_bytes // flit_bytes
    rate = min(each.bytes_per_us for each in (link, following or link))
    packet_ps = num_flits * flit_ps(flit_bytes=flit_bytes, bytes_per_us=rate)
    trip_ps = credit_round_trip_ps(link, following, num_flits=num_flits, flit_bytes=flit_bytes)
    return -(-trip_ps // packet_ps) * packet_bytes


def _buffer_warnings(machine: Machine) -> Iterator[str]:
    packet_bytes, flit_bytes = machine.spec.packet_bytes, machine.spec.flit_bytes
    needed: dict[str, tuple[int, int]] = {}
    for field, number, following in _buffers(machine):
        least = needed_buffer_bytes(
            machine.links[number], following, packet_bytes=packet_bytes, flit_bytes=flit_bytes
        )
        if least > needed.get(field, (0,))[0]:
            needed[field] = least, number
    for field, (least, number) in needed.items():
        found = machine.links[number].buffer_bytes
        if found // packet_bytes * packet_bytes < least:
            yield (
                f"{field}: found {format_bytes(found)}, needed {format_bytes(least)} for the full "
                f"rate of {machine.link_name(number)}: its rate x the credit's round trip + one "
                "packet"
            )


def _buffers(machine: Machine) -> Iterator[tuple[str, int, Link | None]]:
    """Yield the field of the buffer behind a link, the link, and one that packets go to next.

    None: it ends at a memory of the package.
    """
    for number, following in _followings(machine):
        kind = machine.nodes[machine.links[number].dst].kind
        yield buffer_field(kind), number, machine.links[following]
    cube = machine.spec.cube
    impls = {NodeKind.HBM_CTRL: cube.hbm.impl, NodeKind.SRAM: cube.sram.impl}
    for number, link in enumerate(machine.links):
        kind = machine.nodes[link.dst].kind
        if kind in impls and impls[kind] is None:
            yield buffer_field(kind), number, None


def _followings(machine: Machine) -> Iterator[tuple[int, int]]:
    """Links that follow each other on some way through a node; of equal pairs only the first."""
    inward: dict[int, list[int]] = {}
    signatures: dict[tuple[object, ...], int] = {}
    kind_of: list[int] = []
    for number, link in enumerate(machine.links):
        if not machine.nodes[link.dst].kind.is_terminal:
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
    dmas = [machine.node_of(NodeKind.PE_DMA, PeCoord(0, 0, pe)) for pe in pes]
    slices = [machine.node_of(NodeKind.HBM_CTRL, PeCoord(0, 0, pe)) for pe in pes]
    own_cube = [(dma, target, pe) for pe, dma in enumerate(dmas) for target in slices]
    host = machine.host
    whole_sip = [
        (host, machine.node_of(NodeKind.HBM_CTRL, PeCoord(0, cube, pe)), pe)
        for cube in range(grid.num_cubes_per_sip)
        for pe in pes
    ]
    dma, host_bytes = spec.pe.dma, spec.host.in_flight_bytes
    warned: set[str] = set()
    for field, channels, window, pairs, what, is_write in (
        ("pe.dma.in_flight_bytes", dma.read_channels, dma.in_flight_bytes, own_cube, "cube", False),
        ("pe.dma.in_flight_bytes", dma.write_channels, dma.in_flight_bytes, own_cube, "cube", True),
        ("host.in_flight_bytes", 1, host_bytes, whole_sip, "SIP", False),
        ("host.in_flight_bytes", 1, host_bytes, whole_sip, "SIP", True),
    ):
        needed = max(_bytes_in_flight(machine, *pair, is_write=is_write) for pair in pairs)
        if channels * window < needed and field not in warned:
            warned.add(field)
            found = f"{channels} x " * (channels > 1) + format_bytes(window)
            way, access = ("to", "write") if is_write else ("from", "read")
            yield (
                f"{field}: found {found}, needed {format_bytes(needed)} for the full "
                f"rate {way} the farthest slice of a {what}: the rate x the time of one {access}"
            )


def _bytes_in_flight(
    machine: Machine, source: int, target: int, spread: int, *, is_write: bool
) -> int:
    """Return the rate of the data's way x the time of one access on the idle machine."""
    spec = machine.spec
    num_flits = spec.packet_bytes // spec.flit_bytes
    there = _links(machine, machine.route(source, target, Traffic.REQUEST, spread))
    back = _links(machine, machine.route(target, source, Traffic.RESPONSE, spread))
    data, signal = (there, back) if is_write else (back, there)
    access_ps = zero_load_ps(signal, num_flits=1, flit_bytes=spec.flit_bytes)
    access_ps += spec.cube.hbm.least_access_ps(is_write=is_write, opens=True)
    access_ps += zero_load_ps(data, num_flits=num_flits, flit_bytes=spec.flit_bytes)
    rate = min(slice_bytes_per_us(spec), *(link.bytes_per_us for link in data))
    return -(-rate * access_ps // PS_PER_US)


def _links(machine: Machine, route: Iterable[tuple[int, int]]) -> list[Link]:
    return [machine.links[link] for link, _ in route]


def _queue_warnings(machine: Machine) -> Iterator[str]:
    spec = machine.spec
    hbm, timing = spec.cube.hbm, spec.cube.hbm.timing
    if not hbm.is_banked:
        return
    apart = min(timing.ccd_s_clocks, timing.ccd_l_clocks, timing.ccd_r_clocks)
    pace = max(timing.bl_clocks, apart)
    for field, opening in (
        ("read_queue_bursts", timing.rcd_read_clocks),
        ("write_queue_bursts", timing.rcd_write_clocks),
    ):
        needed = -(-opening // pace) + spec.bursts_per_channel()
        if getattr(hbm, field) < needed:
            yield (
                f"cube.hbm.{field}: found {getattr(hbm, field)}, needed {needed} for the full rate "
                "of a pseudo-channel: the bursts that pass while a bank is opened + one packet"
            )


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
