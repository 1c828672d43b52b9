"""Run the probe: each case on an engine of its own, beside its bound and with its breakdown."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.analysis.phases import sample_phases
from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access
from tilewright.device.memory import first_access_ps, slice_spec
from tilewright.engine import AUTO, Auto, EngineKind, TaskGraph, native_built, resolve_engine
from tilewright.engine.core import OWNER_SHIFT
from tilewright.engine.dram.spec import BankedRefreshSpec, BankedSpec, RefreshScope
from tilewright.errors import SpecError, meant
from tilewright.machine.build import Machine, machine_hash, shift_refresh
from tilewright.machine.coords import PeCoord
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.programs.probe.bound import FlowPath, bound_ps, path_of
from tilewright.programs.probe.case import (
    PROBE_CASES,
    Flow,
    ProbeCase,
    Unfit,
    deal_to_channels,
    issuers_of,
)
from tilewright.programs.probe.check import failures_of
from tilewright.programs.probe.path import LinkWatch, PathInput, break_down
from tilewright.records import Breakdown, ProbeRecord, ProbeRow, SkippedCase, installed_versions
from tilewright.records.phases import PhaseSpread
from tilewright.units import format_bytes

TRACED_OWNERS = 8  # at a time: a trace of all would not fit into memory


@dataclass(frozen=True)
class _Load:
    """A case at a size, with what it asks of the machine."""

    case: ProbeCase
    num_bytes: int
    flows: list[Flow]
    paths: tuple[FlowPath, ...] = ()  # through the machine; many, so only while the load runs

    @cached_property
    def issuers(self) -> list[PeCoord | None]:
        """Whoever has a flow, in the order of the owners of tasks."""
        return issuers_of(self.flows)


@dataclass(frozen=True, slots=True)
class _Run:
    device: Device
    ends_ps: list[int]  # by owner
    watch: LinkWatch  # of the owners that are traced

    @property
    def last_owner(self) -> int:
        return self.ends_ps.index(max(self.ends_ps))


def run_probe(
    machine: Machine,
    *,
    names: Sequence[str] = (),
    sizes: Sequence[int] = (),
    choice: EngineKind | Auto = AUTO,
    phases: int | None = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> ProbeRecord:
    """The named cases, or all that the machine has the parts for, at the given or usual sizes.

    What cannot run is refused before anything runs, or skipped with its reason if nobody named it.
    Each row is repeated at so many refresh ``phases``; None: by the rule of ADR 0029.
    """
    kind = resolve_engine(choice, native_built=native_built())
    planned, skipped = _plan(machine, names, sizes)
    rows: list[ProbeRow] = []
    guesses: dict[str, int] = {}
    for number, load in enumerate(planned, 1):
        name = load.case.name
        progress(f"{number}/{len(planned)} {name}, {format_bytes(load.num_bytes)}")
        paths = tuple(path_of(machine, flow) for flow in load.flows)
        load = replace(load, paths=paths)
        row, guesses[name] = _probe(machine, load, kind, guesses.get(name, 0), phases)
        rows.append(row)
    failures = failures_of(rows)
    return ProbeRecord(
        ok=not failures,
        machine=machine.spec.name,
        machine_hash=machine_hash(machine.spec),
        versions=installed_versions(engine=kind.value),
        cases=tuple(rows),
        skipped=tuple(skipped),
        failures=failures,
    )


def _plan(
    machine: Machine, names: Sequence[str], sizes: Sequence[int]
) -> tuple[list[_Load], list[SkippedCase]]:
    """What to run, in the order of the cases and of growing sizes."""
    for num_bytes in sizes:
        if num_bytes < 1:
            fix = "correct --bytes"
            raise SpecError("probe", f"a size of {num_bytes} bytes", "at least one byte", fix)
    planned: list[_Load] = []
    skipped: list[SkippedCase] = []
    for case in _chosen(names):
        for num_bytes in sorted(set(sizes or case.sizes)):
            try:
                flows = list(deal_to_channels(machine, case.build(machine, num_bytes)))
                _check_fit(machine, num_bytes, flows, is_asked=bool(sizes))
            except Unfit as reason:
                if case.name in names:
                    what = f"machine {machine.spec.name!r}: {reason}"
                    expected = f"one that has the parts for case {case.name!r}"
                    fix = "leave the case out or choose another machine"
                    raise SpecError("probe", what, expected, fix) from reason
                skipped.append(SkippedCase(case=case.name, reason=str(reason)))
                break
            planned.append(_Load(case, num_bytes, flows))
    return planned, skipped


def _chosen(names: Sequence[str]) -> list[ProbeCase]:
    for name in names:
        if name not in PROBE_CASES:
            fix = meant(name, PROBE_CASES, "correct --case")
            known = "one of " + ", ".join(PROBE_CASES)
            raise SpecError("probe", f"an unknown case {name!r}", known, fix)
    return [case for case in PROBE_CASES.values() if not names or case.name in names]


def _check_fit(machine: Machine, num_bytes: int, flows: Sequence[Flow], *, is_asked: bool) -> None:
    """Refuse a size that somebody asked for and that no slice has room for."""
    end = max(flow.address + flow.num_bytes for flow in flows)
    capacity = machine.addresses.slice_bytes
    if end <= capacity:
        return
    what = f"{num_bytes} bytes per issuer, which need {end} bytes of a slice"
    if is_asked:
        raise SpecError("probe", what, f"at most {capacity} bytes of a slice", "use fewer bytes")
    raise Unfit(f"a slice has {capacity} bytes, too few for {what}")


def _probe(
    machine: Machine, load: _Load, kind: EngineKind, guess: int, phases: int | None
) -> tuple[ProbeRow, int]:
    """A row, and the owner that ended last: for the next size the best guess whom to trace."""
    run = _run(machine, load, kind, range(guess, guess + TRACED_OWNERS))
    if run.last_owner not in run.watch.owners:
        run = _run(machine, load, kind, range(run.last_owner, run.last_owner + 1))

    def latency_of(shift_ps: int) -> int:
        shifted = shift_refresh(machine, shift_ps)
        start_ps = machine.spec.cube.hbm.refresh.interval_ps  # a refresh may be under way by then
        return max(_run(shifted, load, kind, range(0), start_ps).ends_ps) - start_ps

    spread = sample_phases(machine.spec, phases, max(run.ends_ps), latency_of)
    return _row(machine, load, run, spread), run.last_owner // TRACED_OWNERS * TRACED_OWNERS


def _run(machine: Machine, load: _Load, kind: EngineKind, traced: range, start_ps: int = 0) -> _Run:
    used = {link for path in load.paths for link in path.links}
    watch = LinkWatch(traced)
    device = build_device(machine, kind, links=used, around=watch.around)
    graphs = [TaskGraph() for _ in load.issuers]
    numbers = {issuer: number for number, issuer in enumerate(load.issuers)}
    for flow in load.flows:
        number = numbers[flow.issuer]
        if flow.issuer is None:
            trip = device.host_access(flow.target, flow.access)
        else:
            trip = device.pe_access(flow.issuer, flow.target, flow.access, flow.channel)
        graphs[number].exchange(trip, flow.num_bytes, effect=number, tag=flow.address)
    engine = device.engine
    if traced:
        engine.set_trace(True, traced)
    if start_ps:
        idle = TaskGraph()
        idle.timer(start_ps)
        engine.submit(idle)
        engine.run()
    for number, graph in enumerate(graphs):
        engine.submit(graph, owner=number)
    engine.run()
    ends_ps = [0] * len(load.issuers)
    for at_ps, number in engine.take_effects():
        ends_ps[number] = max(ends_ps[number], at_ps)
    return _Run(device, ends_ps, watch)


def _row(machine: Machine, load: _Load, run: _Run, phases: PhaseSpread | None) -> ProbeRow:
    latency_ps = max(run.ends_ps)
    mean_ps = latency_ps if phases is None else phases.mean_ps
    least_ps = bound_ps(machine, load.paths)
    total = sum(flow.num_bytes for flow in load.flows)
    slices = {flow.target for flow in load.flows}
    limit = slice_bytes_per_us(machine.spec) * len(slices) * usable_share(machine.spec.cube.hbm)
    bottleneck, utilisation = _bottleneck(run.device, latency_ps)
    return ProbeRow(
        case=load.case.name,
        bytes=load.num_bytes,
        issuers=len(load.issuers),
        latency_ps=latency_ps,
        phases=phases,
        bound_ps=least_ps,
        ratio=mean_ps / least_ps,
        bandwidth_gbs=1000 * total / mean_ps,
        bound_gbs=1000 * total / least_ps,
        refresh_limited_gbs=float(limit) / 1000,
        utilisation=utilisation,
        bottleneck=bottleneck,
        breakdown_ps=Breakdown(**break_down(_path_input(machine, load, run))),
    )


def _path_input(machine: Machine, load: _Load, run: _Run) -> PathInput:
    device, engine = run.device, run.device.engine
    users: dict[int, set[PeCoord | None]] = defaultdict(set)
    for flow in load.flows:
        users[device.memories[device.memory_node(flow.target)]].add(flow.issuer)
    last = run.last_owner
    own = next(flow for flow in load.flows if flow.issuer == load.issuers[last])
    size = min(own.num_bytes, machine.spec.packet_bytes)
    is_write = own.access is Access.WRITE
    return PathInput(
        trace=[row for row in engine.take_trace() if row.packet_id >> OWNER_SHIFT == last],
        memory_trace=[
            row for row in engine.take_memory_trace() if row.packet_id >> OWNER_SHIFT == last
        ],
        links={server: machine.links[link] for link, server in device.links.items()},
        shared_memories={memory for memory, owners in users.items() if len(owners) > 1},
        is_alone=len(load.issuers) == 1,
        travels_ps={device.links[link]: run.watch.latencies_ps(link) for link in run.watch.heard},
        least_access_ps=first_access_ps(machine.spec.cube.hbm, size, is_write=is_write),
        refreshes=_refreshes(device, {flow.target for flow in load.flows}),
    )


def _refreshes(device: Device, slices: Iterable[PeCoord]) -> dict[int, BankedRefreshSpec]:
    """Of the slices that refresh all their banks at a time, by server."""
    if device.machine.spec.cube.hbm.impl is not None:
        return {}
    spec = device.machine.spec
    found = {}
    for pe in slices:
        memory = slice_spec(spec.cube.hbm, pe.pe, spec.cube.pes)
        refresh = memory.refresh if isinstance(memory, BankedSpec) else None
        if refresh is not None and refresh.scope is RefreshScope.ALL_BANKS:
            server = device.memories[device.memory_node(pe)]
            found[server] = refresh
    return found


def _bottleneck(device: Device, latency_ps: int) -> tuple[str, float]:
    """The link or memory that was in use for the greatest share of the time."""
    machine, servers = device.machine, device.engine.statistics().servers
    found = [
        (servers[server].busy_ps / latency_ps, machine.link_name(link))
        for link, server in device.links.items()
    ]
    for node, server in device.memories.items():
        share = servers[server].busy_ps / latency_ps
        if machine.spec.cube.hbm.impl is None:
            channels = device.engine.memory_counters(server)
            used_ps = sum(channel.busy_ps + channel.refresh_ps for channel in channels)
            share = used_ps / (len(channels) * latency_ps)
        found.append((share, machine.nodes[node].name))
    share, name = max(found, key=lambda item: item[0])
    return name, share
