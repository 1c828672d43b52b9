"""Rooflines: what a program's work takes at least at the peak rates of a machine's spec.

Work is shared evenly by so many PEs and their slices; nothing waits for anything. A resource that
a user's block stands for has no part, since only the block knows its rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.benches.programs.contract import Bound
from tilewright.device.cost_table import CostClass, cost_class_of
from tilewright.device.gemm import build_gemm
from tilewright.errors import BenchError
from tilewright.machine.build import Machine
from tilewright.machine.spec import HbmSpec, VectorSpec
from tilewright.machine.totals import slice_bytes_per_us, usable_share
from tilewright.units import PS_PER_S, PS_PER_US

__all__ = ("Work", "bound_of", "stream_ps")


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


def bound_of(machine: Machine, work: Work) -> Bound:
    """The greatest of the times that HBM, DMA links, GEMM units and vector units need alone."""
    parts = {
        "HBM": _hbm_ps(machine, work),
        "DMA link": _link_ps(machine, work),
        "GEMM unit": _gemm_ps(machine, work),
        "vector unit": _vector_ps(machine.spec.pe.vector, work),
    }
    known = {name: part_ps for name, part_ps in parts.items() if part_ps}
    if not known:
        fix = "run it on a machine whose blocks say their rates"
        raise BenchError("bound", "no resource with a known rate", "at least one", fix)
    resource = max(known, key=lambda name: known[name])
    return Bound(known[resource], resource, known)


def stream_ps(machine: Machine, num_bytes: int) -> int | None:
    """Least time in which one slice serves so many bytes; None if a user's block serves them.

    Refresh stops a slice once an interval, so any window as long as n intervals has lost n times
    what one refresh costs. Long streams come to the refresh-limited peak.
    """
    hbm = machine.spec.cube.hbm
    if hbm.impl is not None:
        return None
    busy_ps = Fraction(num_bytes * PS_PER_US, slice_bytes_per_us(machine.spec))
    if hbm.model == "simple" or hbm.refresh.kind != "all_bank":
        return int(busy_ps / usable_share(hbm))
    lost_ps = _lost_ps(hbm)
    open_ps = hbm.refresh.interval_ps - lost_ps
    num_refreshes = max(0, -(-busy_ps // open_ps) - 1)
    return int(busy_ps + num_refreshes * lost_ps)


def _lost_ps(hbm: HbmSpec) -> Fraction:
    """The data bus stands still from the end of the last burst to the start of the next one."""
    from_start_to_start_ps = hbm.refresh.interval_ps * (1 - usable_share(hbm))
    return from_start_to_start_ps - hbm.burst_ps


def _hbm_ps(machine: Machine, work: Work) -> int | None:
    return stream_ps(machine, (work.read_bytes + work.written_bytes) // work.num_pes)


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
