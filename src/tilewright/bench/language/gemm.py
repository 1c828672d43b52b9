"""A product of 4096 x 4096 x 4096 over the PEs of one SIP, beside NumPy on one thread."""

import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.bench.language.kernels import gemm_kernel
from tilewright.device.gemm import build_gemm
from tilewright.language.dtype import float16
from tilewright.machine import Machine
from tilewright.machine.coords import PeCoord
from tilewright.records.bench import GemmFigures
from tilewright.runtime.workspace import LaunchResult, PlacedArray, Workspace
from tilewright.units import PS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmSpec:
    """A is split by rows over cubes and the same on all PEs of a cube; B is split by columns over
    the PEs of a cube and the same on all cubes. So every PE has what its share needs in its slice.
    """

    size: int = 4096
    tile: tuple[int, int, int] = (256, 256, 512)
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Share:
    """What one PE multiplies."""

    m: int
    n: int
    k: int


def measure_gemm(spec: GemmSpec, machine: Machine) -> GemmFigures:
    """Wall times as ratios to NumPy in this run; the simulated time as a share of the peak."""
    pes = [coord for coord in machine.grid.pes() if coord.sip == 0]
    numpy_seconds = _numpy_seconds(spec)
    share = _share(spec.size, machine)
    timing, timing_seconds, events = _run(spec, machine, pes, share, carries_data=False)
    _, values_seconds, _ = _run(spec, machine, pes, share, carries_data=True)
    double = Share(2 * share.m, share.n, share.k)
    _, _, more_events = _run(spec, machine, pes, double, carries_data=False)
    return GemmFigures(
        peak_fraction=float(_peak_fraction(machine, share, timing)),
        timing_vs_numpy=timing_seconds / numpy_seconds,
        values_vs_numpy=values_seconds / numpy_seconds,
        event_growth=more_events / events / 2,
        latency_ps=timing.latency_ps,
        numpy_seconds=numpy_seconds,
    )


def _share(size: int, machine: Machine) -> Share:
    pes_per_cube = machine.spec.cube.pes
    num_cubes = machine.grid.num_cubes_per_sip
    return Share(size // num_cubes, size // pes_per_cube, size)


def _numpy_seconds(spec: GemmSpec) -> float:
    rng = np.random.default_rng(spec.seed)
    a, b = (rng.standard_normal((spec.size, spec.size), np.float32) for _ in range(2))
    with threadpool_limits(limits=1):
        _ = a[:256] @ b  # warm
        start = time.perf_counter()
        _ = a @ b
        return time.perf_counter() - start


def _run(
    spec: GemmSpec, machine: Machine, pes: list[PeCoord], share: Share, *, carries_data: bool
) -> tuple[LaunchResult, float, int]:
    workspace = Workspace(machine)
    rng = np.random.default_rng(spec.seed)

    def place(rows: int, columns: int, *, filled: bool) -> PlacedArray:
        shape = (len(pes), rows, columns)
        pages = rows * columns * 2 // machine.spec.pe.mmu.page_bytes
        array = workspace.reserve(shape, float16, pes, max(1, pages))
        if filled and carries_data:
            one = rng.standard_normal((rows, columns), np.float32).astype(np.float16)
            workspace.write(array, np.broadcast_to(one, shape))
        return array

    operands = (place(share.m, share.k, filled=True), place(share.k, share.n, filled=True))
    out = place(share.m, share.n, filled=False)
    events = workspace.device.engine.statistics().events
    start = time.perf_counter()
    sizes = (share.m, share.n, share.k)
    result = workspace.launch(
        gemm_kernel, *operands, out, *sizes, spec.tile, grid=(len(pes),), pes=pes,
        carries_data=carries_data,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    return result, seconds, workspace.device.engine.statistics().events - events


def _peak_fraction(machine: Machine, share: Share, result: LaunchResult) -> Fraction:
    peak = build_gemm("pe", machine.spec.pe.gemm).peak_flop_per_s("f16")
    if peak is None:
        return Fraction(0)
    return Fraction(2 * share.m * share.n * share.k * PS_PER_S, result.latency_ps) / peak
