"""Where the time of a run went: launch after launch, back from the end of the measured window."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from tilewright.analysis.trace.critical_path import ProgramPath
from tilewright.analysis.trace.fields import PathFields
from tilewright.device.build import link_block
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.machine.field import latency_fields, rate_field
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.records import RunParts
from tilewright.records.run.part import PathTimes
from tilewright.runtime.request import LaunchReport
from tilewright.units import flit_ps


def break_down_run(
    window: tuple[int, int],
    launches: Sequence[LaunchReport],
    paths: Mapping[int, ProgramPath],
    cut: Collection[int] = (),
) -> RunParts:
    """Parts that add up to the window; without a path, an execution is one part.

    From the end the chain goes to the launch that completed last, to its submission, to the launch
    that completed last before that. In between the host waited for its own transfers.
    """
    parts = Counter[str]()
    start_ps, at_ps = window
    for launch in chain_of(window, launches):
        parts["host_transfer"] += at_ps - launch.completed_ps
        parts.update(_parts_of(launch, paths, cut))
        at_ps = launch.submitted_ps
    parts["host_transfer"] += at_ps - start_ps
    return RunParts(**parts)


def chain_of(window: tuple[int, int], launches: Sequence[LaunchReport]) -> Iterator[LaunchReport]:
    """Yield the launches that a run's latency is made of, the last one first.

    Each is the one that completed last before the launch behind it was submitted.
    """
    start_ps, at_ps = window
    for launch in sorted(launches, key=lambda each: (-each.completed_ps, each.submitted_ps)):
        if at_ps <= start_ps:
            return
        if launch.completed_ps <= at_ps and launch.submitted_ps < at_ps:
            yield launch
            at_ps = launch.submitted_ps


def lines_of_run(
    window: tuple[int, int],
    launches: Sequence[LaunchReport],
    lines_ps: Mapping[int, Mapping[str, int]],
) -> dict[str, int]:
    """Time on the critical path by what was said where, the longest first."""
    found: Counter[str] = Counter()
    for launch in chain_of(window, launches):
        if launch.last_owner is not None:
            found.update(lines_ps.get(launch.last_owner, {}))
    return dict(found.most_common())


def _parts_of(
    launch: LaunchReport, paths: Mapping[int, ProgramPath], cut: Collection[int]
) -> dict[str, int]:
    owner = launch.last_owner
    path = None if owner is None else paths.get(owner)
    if path is None:
        return {
            "dispatch": launch.dispatch_ps,
            "execution": launch.execution_ps,
            "completion": launch.completion_ps,
        }
    parts, start_ps = Counter(path.parts_ps), path.start_ps
    if owner in cut:
        start_ps = launch.first_start_ps
        parts["execution"] += path.start_ps - start_ps
    parts["dispatch"] += start_ps - launch.submitted_ps
    parts["completion"] += launch.completed_ps - path.end_ps
    return parts


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
    reports = list(chain_of(window, launches))
    owners = [each.last_owner for each in reports if each.last_owner is not None]
    found = [paths[owner] for owner in owners if owner in paths]
    ends = [each.last_pe for each in reports if each.last_pe is not None]
    command = _sum(_command_path(machine, pe) for pe in ends)
    counts = ("refresh_ps", "unknown_ps", "num_accesses", "window_ps")
    return PathTimes(
        work_ps=_in_order(_sum(each.work_ps for each in found) + command),
        queue_ps=_in_order(_sum(each.queue_ps for each in found)),
        least_ps=_in_order(_sum(each.least_ps for each in found) + command),
        command_ps=_in_order(command),
        **{name: sum(getattr(each, name) for each in found) for name in counts},
    )


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    total = Counter[str]()
    for counter in counters:
        total.update(counter)
    return total


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
        requested = _least_times(machine, source, target, Traffic.REQUEST, pe.pe)
        answered = _least_times(machine, target, source, Traffic.RESPONSE, pe.pe)
        for field, time_ps in chain(requested, answered):
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
