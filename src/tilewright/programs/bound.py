"""Lower bounds of programs: latencies that nothing avoids, and work at the peak rates of the spec.

Work is shared evenly by so many PEs and their slices; nothing waits for anything. A resource that
a user's block stands for has no part, since only the block knows its rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.device.gemm import build_gemm
from tilewright.device.vector import CostClass, cost_class_of
from tilewright.machine.build import Machine
from tilewright.machine.spec import HbmSpec, VectorSpec
from tilewright.machine.totals import usable_share
from tilewright.programs.contract import Bound
from tilewright.programs.latency import Path, latency_of
from tilewright.units import PS_PER_S, PS_PER_US

LATENCY = "latency"  # in the place of a resource


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
    parts = {
        "HBM": _hbm_ps(machine, work),
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


def _hbm_ps(machine: Machine, work: Work) -> int | None:
    num_bytes = (work.read_bytes + work.written_bytes) // work.num_pes
    return stream_ps(machine, num_bytes, has_writes=work.written_bytes > 0)


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
    lane_cycles = sum(elements * _cycles(vector, op) for op, elements in work.elements.items())
    return int(Fraction(lane_cycles * PS_PER_S, vector.lanes * vector.hz * work.num_pes))


def _cycles(vector: VectorSpec, op: str) -> int:
    cost = cost_class_of("bound", op)
    return vector.complex_cycles if cost is CostClass.COMPLEX else vector.simple_cycles
