"""Lower bounds of programs: latencies that nothing avoids, and work at the peak rates of the spec.

Work is shared evenly by so many PEs and their slices; nothing waits for anything (ADR 0030). A
resource that a user's block stands for has no part, since only the block knows its rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain

from tilewright.device.gemm import build_gemm
from tilewright.device.least_time import CommandTime, access_time, between_ps, command_times
from tilewright.device.vector import CostClass, cost_class_of
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.spec import HbmSpec, VectorSpec
from tilewright.machine.totals import usable_share
from tilewright.units import PS_PER_S, PS_PER_US, flit_ps

LATENCY = "latency"  # in the place of a resource


@dataclass(frozen=True, slots=True)
class Bound:
    """What no schedule on that machine can beat: the greatest of its parts, and whose it is."""

    total_ps: int
    resource: str
    parts: Mapping[str, int]  # of each resource, a bound: its latencies and its work
    rates: Mapping[str, int] = field(default_factory=dict)
    """Of each resource, its work over its peak rate; all of the part where nothing is said."""

    @classmethod
    def of(cls, parts: Mapping[str, int], rates: Mapping[str, int]) -> "Bound":
        """Take the greatest part."""
        resource = max(parts, key=lambda name: parts[name])
        return cls(parts[resource], resource, parts, rates)

    @property
    def latency_ps(self) -> int:
        """What of the bound is latency."""
        return self.total_ps - self.rate_ps

    @property
    def rate_ps(self) -> int:
        """What of the bound is work over a rate."""
        return self.rates.get(self.resource, self.total_ps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Steps of a launch that follow one another in every schedule of it.

    Each PE of ``pes`` gets its command, loads, computes, stores what it has found, and answers.
    ``messages`` name a sender and a receiver, whose result depends on what the sender loads.
    """

    pes: tuple[PeCoord, ...]
    commands: int = 1
    """Rounds of commands, as of rings that PEs are told of before a launch. 0: the time counts from
    the start of the programs to their end."""
    moves: bool = True  # else nothing has to be loaded, computed or stored
    loads: int = 1  # of which each needs an address that the one before it has loaded
    computes: bool = True
    walks: bool = True  # no page has been translated by these PEs before
    opens: bool = True  # no row has been opened, and no two PEs read the same slice
    all_store: bool = True  # every PE stores a result of what it has loaded; else one of them does
    messages: tuple[tuple[PeCoord, PeCoord], ...] = ()
    read_from: Mapping[PeCoord, PeCoord] = field(default_factory=dict)
    """Whose slice a PE reads, where it is not its own."""
    write_to: Mapping[PeCoord, PeCoord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of a path: all of it, and what of it comes before and behind the work of a
    resource that all PEs share evenly.
    """

    path_ps: int  # of the longest path, in which nothing but latency counts
    hbm_ps: int  # beside the data of a slice
    link_ps: int  # beside the bytes on the links of DMAs
    unit_ps: int  # beside the work of GEMM or vector units
    message_ps: int  # beside the bytes of messages on links


@dataclass(frozen=True, slots=True)
class _PeTimes:
    """Least times of the steps of a path at one PE."""

    command: CommandTime
    load_ps: int  # of the first load, from the start of the program
    beside_data_ps: int  # of that, before the slice's first data and behind its last
    before_ps: int  # from the host's submission until the PE has computed something
    store_ps: int
    behind_ps: int  # from the end of what is computed until the host knows that it is stored


def latency_of(machine: Machine, path: Path) -> Latency:
    """Return the least latencies of a path on a machine on which nothing waits or refreshes."""
    if not path.pes:
        return Latency(0, 0, 0, 0, 0)
    dispatch_ps = machine.spec.pe.scheduler.command_ps
    compute_ps = 2 * dispatch_ps if path.computes else 0  # operands from the TCM, then the unit
    send_ps = 2 * dispatch_ps  # a part of the command, and a look at the credits
    times = _times_of(machine, path, compute_ps)
    own = [times[pe] for pe in path.pes]
    longest_ps = max(each.command.there_ps + each.command.back_ps for each in own)
    rounds_ps = max(0, path.commands - 1) * longest_ps
    around_ps = rounds_ps + min(each.command.there_ps for each in own)
    around_ps += min(each.command.back_ps for each in own)
    if path.moves and path.all_store:
        longest_ps = max(longest_ps, *(each.before_ps + each.behind_ps for each in own))
    elif path.moves:
        ends_ps = min(each.before_ps for each in own), min(each.behind_ps for each in own)
        longest_ps = max(longest_ps, sum(ends_ps))
    for sender, receiver in path.messages if path.moves else ():
        ends_ps = times[sender].before_ps, times[receiver].behind_ps
        message_ps = send_ps + between_ps(machine, sender, receiver)
        longest_ps = max(longest_ps, sum(ends_ps) + message_ps)
    bytes_per_us = machine.spec.cube.noc.attach_bytes_per_us
    flit_time_ps = flit_ps(flit_bytes=machine.spec.flit_bytes, bytes_per_us=bytes_per_us)
    alone_ps = around_ps + min(each.load_ps for each in own) + compute_ps
    alone_ps += min(each.store_ps for each in own)
    return Latency(
        path_ps=rounds_ps + longest_ps,
        hbm_ps=around_ps + min(each.beside_data_ps for each in own),
        link_ps=alone_ps - flit_time_ps,
        unit_ps=alone_ps,
        message_ps=alone_ps + send_ps,
    )


def _times_of(machine: Machine, path: Path, compute_ps: int) -> dict[PeCoord, _PeTimes]:
    """Return the times of all PEs of a path, those of messages among them.

    A command is issued when its addresses are known (ADR 0008). What was computed goes to the TCM
    before it is stored.
    """
    pe_spec = machine.spec.pe
    issue_ps, dispatch_ps = pe_spec.cpu.command_ps, pe_spec.scheduler.command_ps
    known_ps = min(pe_spec.mmu.hit_ps, pe_spec.mmu.walk_ps)
    translation_ps = pe_spec.mmu.walk_ps if path.walks else known_ps
    commands = command_times(machine, path.pes) if path.commands else {}
    found = {}
    for pe in dict.fromkeys((*path.pes, *chain.from_iterable(path.messages))):
        command = commands.get(pe, CommandTime(0, 0))
        source, target = path.read_from.get(pe, pe), path.write_to.get(pe, pe)
        read = access_time(machine, pe, source, is_write=False, is_open=True)
        first = read
        if path.opens:
            first = access_time(machine, pe, source, is_write=False, is_open=False)
        write = access_time(machine, pe, target, is_write=True, is_open=True)
        load_ps = issue_ps + translation_ps + dispatch_ps + first.total_ps
        next_ps = issue_ps + known_ps + dispatch_ps + read.total_ps
        loads_ps = load_ps + (path.loads - 1) * next_ps
        store_ps = (1 + path.computes) * dispatch_ps + write.total_ps
        found[pe] = _PeTimes(
            command,
            load_ps,
            load_ps - first.data_ps,
            command.there_ps + loads_ps + compute_ps,
            store_ps,
            store_ps + command.back_ps,
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What must be done in all, by ``num_pes`` PEs together.

    Bytes are those that DMAs move between memories and PEs: each is served by an HBM slice once.
    ``flop`` are by the dtype of the operands, ``elements`` by the op of the vector unit.
    """

    num_pes: int
    read_bytes: int = 0
    written_bytes: int = 0
    flop: Mapping[str, int] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)


def bound_of(
    machine: Machine, work: Work, path: Path, messages: Mapping[str, tuple[int, int]] | None = None
) -> Bound:
    """Return the greatest of the times that each resource needs alone, latencies included.

    ``messages`` are links that messages pass, with what their bytes take and the least latency
    behind them; without bytes there is no message.
    """
    latency, rates = latency_of(machine, path), rates_of(machine, work)
    latencies_ps = {
        "HBM": latency.hbm_ps,
        "DMA link": latency.link_ps,
        "GEMM unit": latency.unit_ps,
        "vector unit": latency.unit_ps,
        LATENCY: latency.path_ps,
    }
    rates[LATENCY] = 0
    for name, (rate_ps, behind_ps) in (messages or {}).items():
        if rate_ps:
            rates[name] = rate_ps
            latencies_ps[name] = latency.message_ps + behind_ps
    parts = {name: latencies_ps[name] + rate_ps for name, rate_ps in rates.items()}
    return Bound.of(parts, rates)


def sum_bounds(bounds: Sequence[Bound]) -> Bound:
    """Return the bound of launches that follow one another.

    Where a launch does not use a resource, it takes its latency all the same.
    """
    names = dict.fromkeys(name for bound in bounds for name in bound.parts)
    return Bound.of(
        {name: sum(it.parts.get(name, it.parts[LATENCY]) for it in bounds) for name in names},
        {name: sum(it.rates.get(name, 0) for it in bounds) for name in names},
    )


def rates_of(machine: Machine, work: Work) -> dict[str, int]:
    """Return the times that HBM, DMA links, GEMM units and vector units need for the work alone."""
    num_bytes = (work.read_bytes + work.written_bytes) // work.num_pes
    parts = {
        "HBM": stream_ps(machine, num_bytes, has_writes=work.written_bytes > 0),
        "DMA link": _link_ps(machine, work),
        "GEMM unit": _gemm_ps(machine, work),
        "vector unit": _vector_ps(machine.spec.pe.vector, work),
    }
    return {name: part_ps for name, part_ps in parts.items() if part_ps}


def stream_ps(machine: Machine, num_bytes: int, *, has_writes: bool = False) -> int | None:
    """Least time in which one slice serves so many bytes; None if a user's block serves them.

    Refresh stops a slice once an interval, so any window as long as n intervals has lost n times
    what one refresh costs. Long streams of reads come to the refresh-limited peak.
    """
    hbm = machine.spec.cube.hbm
    if hbm.impl is not None:
        return None
    num_channels = machine.spec.cube.pseudo_channels_per_slice
    busy_ps = Fraction(num_bytes * PS_PER_US) / (hbm.channel_rate * num_channels)
    if hbm.model == "simple" or hbm.refresh.kind != "all_bank":
        return int(busy_ps / usable_share(hbm))
    lost_ps = _lost_ps(hbm, has_writes=has_writes)
    open_ps = hbm.refresh.interval_ps - lost_ps
    num_refreshes = max(0, -(-busy_ps // open_ps) - 1)
    return int(busy_ps + num_refreshes * lost_ps)


def _lost_ps(hbm: HbmSpec, *, has_writes: bool) -> int:
    """Return how long a refresh keeps the data bus still, from the last data to the next.

    With writes the shortest turn counts: they may follow where reads come before, or the reverse.
    """
    timing = hbm.timing
    read = timing.rtp_clocks - timing.cl_clocks - timing.bl_clocks  # from its data to the precharge
    befores = [read, *([timing.wr_clocks] if has_writes else [])]
    behinds = [timing.rcd_read_clocks + timing.cl_clocks]
    behinds += [timing.rcd_write_clocks + timing.cwl_clocks] if has_writes else []
    clocks = min(befores) + timing.rp_clocks + min(behinds)
    return max(0, clocks * timing.clock_ps + hbm.refresh.all_bank_ps)


def _link_ps(machine: Machine, work: Work) -> int:
    """Reads and writes leave and enter a PE by two links, so the busier one counts.

    A byte takes time however many PEs share it.
    """
    num_bytes = max(work.read_bytes, work.written_bytes)
    shared_ps = num_bytes * PS_PER_US // (machine.spec.cube.noc.attach_bytes_per_us * work.num_pes)
    return max(shared_ps, min(1, num_bytes))


def _gemm_ps(machine: Machine, work: Work) -> int | None:
    unit = build_gemm("GEMM unit", machine.spec.pe.gemm)
    total_ps = Fraction(0)
    for dtype, flop in work.flop.items():
        peak = unit.peak_flop_per_s(dtype)
        if peak is None:
            return None
        total_ps += flop * PS_PER_S / peak
    return int(total_ps / work.num_pes)


def _vector_ps(vector: VectorSpec, work: Work) -> int | None:
    if vector.impl is not None:
        return None
    lane_cycles = 0
    for op, elements in work.elements.items():
        is_complex = cost_class_of("bound", op) is CostClass.COMPLEX
        lane_cycles += elements * (vector.complex_cycles if is_complex else vector.simple_cycles)
    return int(Fraction(lane_cycles * PS_PER_S, vector.lanes * vector.hz * work.num_pes))
