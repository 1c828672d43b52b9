"""The fields of the machine file that set the time of a run, and how much of it each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tilewright.analysis.breakdown import chain_of
from tilewright.analysis.trace.fields import PathFields
from tilewright.device.link import link_block
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.field import latency_fields, rate_field
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.records.run.part import PathTimes
from tilewright.runtime.request import LaunchReport
from tilewright.units import flit_ps

IO_CPU, M_CPU, PE_CPU = "sip.io_cpu.command_ps", "cube.m_cpu.command_ps", "pe.cpu.command_ps"


def fields_of_run(
    machine: Machine,
    window: tuple[int, int],
    launches: Sequence[LaunchReport],
    paths: Mapping[int, PathFields],
) -> PathTimes:
    """Return times by field of the critical path, launch after launch.

    What cannot be known by field is left out: waiting for messages and for refresh.
    """
    work, queue, least, command = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    refresh_ps = unknown_ps = num_accesses = window_ps = 0
    for launch in chain_of(window, launches):
        fields = None if launch.last_owner is None else paths.get(launch.last_owner)
        if fields is not None:
            work.update(fields.work_ps)
            queue.update(fields.queue_ps)
            least.update(fields.least_ps)
            refresh_ps += fields.refresh_ps
            unknown_ps += fields.unknown_ps
            num_accesses += fields.num_accesses
            window_ps += fields.window_ps
        if launch.last_pe is not None:
            command.update(_command_path(machine, launch.last_pe))
    return PathTimes(
        work_ps=_in_order(work + command),
        queue_ps=_in_order(queue),
        least_ps=_in_order(least + command),
        command_ps=_in_order(command),
        refresh_ps=refresh_ps,
        unknown_ps=unknown_ps,
        num_accesses=num_accesses,
        window_ps=window_ps,
    )


def _in_order(found: Counter[str]) -> dict[str, int]:
    return {field: time_ps for field, time_ps in found.most_common() if time_ps > 0}


def _command_path(machine: Machine, pe: PeCoord) -> Counter[str]:
    """Return the least times of a command's way to a PE and of its answer's way back."""
    spec, nodes = machine.spec, machine.nodes
    io_cpu = next(
        number
        for number, node in enumerate(nodes)
        if node.kind is NodeKind.IO_CPU and node.where == SipCoord(pe.sip)
    )
    way = (
        machine.host, io_cpu,
        machine.node_of(NodeKind.M_CPU, pe), machine.node_of(NodeKind.PE_CPU, pe),
    )  # fmt: skip
    found: Counter[str] = Counter()
    for source, target in pairwise(way):
        for one, other, traffic in (
            (source, target, Traffic.REQUEST),
            (target, source, Traffic.RESPONSE),
        ):
            for field, time_ps in _least_times(machine, one, other, traffic, pe.pe):
                found[field] += time_ps
    found[IO_CPU] += 2 * spec.sip.io_cpu.command_ps
    found[M_CPU] += 2 * spec.cube.m_cpu.command_ps
    found[PE_CPU] += 2 * spec.pe.cpu.command_ps
    return found


def _least_times(
    machine: Machine, source: int, target: int, traffic: Traffic, spread: int
) -> Iterator[tuple[str, int]]:
    """Yield the latencies and one flit's time of each link that a command crosses."""
    flit_bytes = machine.spec.flit_bytes
    for link_id, _ in machine.route(source, target, traffic, spread):
        link = machine.links[link_id]
        if link_block(machine, link).impl is not None:
            continue
        yield from latency_fields(machine, link_id)
        rate = link.bytes_per_us
        yield rate_field(machine, link_id), flit_ps(flit_bytes=flit_bytes, bytes_per_us=rate)
