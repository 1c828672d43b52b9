"""How fast the kernel language runs beside Triton's interpreter, and how well its kernels do."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import metadata
from math import prod
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tilewright.bench.language.kernels import (
    CASES,
    LanguageCase,
    decode_kernel,
    gemm_kernel,
    step_kernel,
)
from tilewright.bench.peers import load_peer
from tilewright.device.gemm import build_gemm
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.language.dtype import float16
from tilewright.machine import Machine, build_machine, parse_machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.totals import totals_of
from tilewright.programs.contract import row_error
from tilewright.records import installed_versions
from tilewright.records.bench import GemmFigures, LanguageBenchRecord, LanguageRow, TritonRatios
from tilewright.runtime.workspace import LaunchResult, PlacedArray, Workspace
from tilewright.units import PS_PER_S, PS_PER_US, ROW_TOLERANCES

Progress = Callable[[str], None]
Tile = tuple[int, int, int]  # M, N, K

WARM_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageBenchSpec:
    """Sizes of the parts that have no peer; the kernels beside Triton have theirs in the cases."""

    machine: str = "ahbm"
    rounds: int = 5
    seed: int = 1
    decode_rows: int = 128
    decode_tokens: int = 32_768
    decode_block: int = 256
    group: int = 4
    head_dim: int = 128
    programs: int = 256
    steps: int = 1000
    tile: int = 64


def run_language_bench(spec: LanguageBenchSpec, *, progress: Progress) -> LanguageBenchRecord:
    """Both sides run a kernel once, then each warms up and takes its turns; medians count."""
    peer = load_peer("triton_interpreter")
    kernels = load_peer("tutorial_kernels")
    machine = build_machine(parse_machine(spec.machine))
    with peer.TritonInterpreter() as interpreter:
        rows = tuple(
            _compare(spec, machine, kernels, interpreter, case, progress) for case in CASES
        )
    progress("a product of 4096 x 4096 x 4096 over 128 PEs")
    gemm = measure_gemm(machine, seed=spec.seed)
    progress(f"decode attention: {spec.decode_rows} rows of {spec.decode_tokens} tokens")
    decode = _decode(spec, machine)
    fraction = _hbm_fraction(spec, machine, decode)
    progress(f"{spec.programs} programs of {spec.steps} steps")
    steps_per_s = _steps_per_s(spec, machine)
    return LanguageBenchRecord(
        versions=installed_versions(engine=resolve_engine(AUTO, native_built=native_built()).value),
        triton=metadata.version("triton"),
        seed=spec.seed,
        triton_interpreter=_ratios(rows),
        kernels=rows,
        gemm_4096=gemm,
        decode_32k_hbm_fraction=fraction,
        decode_latency_ps=decode.latency_ps,
        steps_per_s=steps_per_s,
        values_ok=all(row.error <= ROW_TOLERANCES["f32"] for row in rows),
    )


def _compare(
    spec: LanguageBenchSpec,
    machine: Machine,
    kernels: ModuleType,
    interpreter: Any,
    case: LanguageCase,
    progress: Progress,
) -> LanguageRow:
    """One cube: pages interleaved over its PEs, programs dealt to them."""
    arrays = case.arrays(np.random.default_rng(spec.seed))
    workspace = Workspace(machine)
    pes = [coord for coord in machine.grid.pes() if (coord.sip, coord.cube) == (0, 0)]
    placed = {name: workspace.place(array, pes) for name, array in arrays.items()}
    kernel = getattr(kernels, case.kernel)

    call: dict[str, Any] = {**placed, **case.numbers}
    launch = partial(workspace.launch, kernel, grid=case.grid, pes=pes, **call)

    def act() -> float:
        start = time.perf_counter()
        launch()
        return time.perf_counter() - start

    progress(f"{case.name}: warming up")
    interpreter.run(case.kernel, case.grid, {**arrays, **case.numbers})
    result = launch()  # plans, routes and pages are there
    progress(f"{case.name}: {spec.rounds} turns here")
    seconds = _turns(spec.rounds, act)
    progress(f"{case.name}: {spec.rounds} turns in Triton's interpreter")
    theirs = _turns(spec.rounds, partial(interpreter.run, case.kernel, case.grid, {}))
    error = row_error(workspace.read(placed["out_ptr"]), interpreter.fetch("out_ptr"))
    return LanguageRow(
        kernel=case.name,
        seconds=median(seconds),
        interpreter_seconds=median(theirs),
        latency_ps=result.latency_ps,
        commands=result.counters.commands,
        gathers=result.counters.gathers,
        error=error,
    )


def _turns(rounds: int, turn: Callable[[], float]) -> list[float]:
    """Those that count, in a row: a side that has waited for the other is slow at first."""
    warm_seconds = 0.0
    while warm_seconds < WARM_SECONDS:
        warm_seconds += turn()
    return [turn() for _ in range(rounds)]


def _ratios(rows: tuple[LanguageRow, ...]) -> TritonRatios:
    ratios = {row.kernel: row.interpreter_seconds / row.seconds for row in rows}
    return TritonRatios(**ratios, geomean=prod(ratios.values()) ** (1 / len(ratios)))


def measure_gemm(
    machine: Machine, *, size: int = 4096, tile: Tile = (256, 256, 512), seed: int = 1
) -> GemmFigures:
    """Measure a product over the PEs of one SIP beside NumPy on one thread.

    A is split by rows over cubes and the same on all PEs of a cube; B is split by columns over the
    PEs of a cube and the same on all cubes. So every PE has what its share needs in its slice. Wall
    times are ratios to NumPy in this run, the simulated time is a share of the peak.
    """
    m, n, k = size // machine.grid.num_cubes_per_sip, size // machine.spec.cube.pes, size
    numpy_seconds = _numpy_seconds(size, seed)
    timing, timing_seconds, events = _multiply(machine, (m, n, k), tile, seed, carries_data=False)
    _, values_seconds, _ = _multiply(machine, (m, n, k), tile, seed, carries_data=True)
    _, _, more_events = _multiply(machine, (2 * m, n, k), tile, seed, carries_data=False)
    peak = build_gemm("pe", machine.spec.pe.gemm).peak_flop_per_s("f16")
    rate = Fraction(2 * m * n * k * PS_PER_S, timing.latency_ps)
    return GemmFigures(
        peak_fraction=float(rate / peak) if peak is not None else 0.0,
        timing_vs_numpy=timing_seconds / numpy_seconds,
        values_vs_numpy=values_seconds / numpy_seconds,
        event_growth=more_events / events / 2,
        latency_ps=timing.latency_ps,
        numpy_seconds=numpy_seconds,
    )


def _numpy_seconds(size: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
    with threadpool_limits(limits=1):
        _ = a[:256] @ b  # warm
        start = time.perf_counter()
        _ = a @ b
        return time.perf_counter() - start


def _multiply(
    machine: Machine, share: Tile, tile: Tile, seed: int, *, carries_data: bool
) -> tuple[LaunchResult, float, int]:
    """Multiply (m, k) by (k, n) on every PE; return the launch, its wall time and its events."""
    workspace, rng = Workspace(machine), np.random.default_rng(seed)
    pes = [coord for coord in machine.grid.pes() if coord.sip == 0]
    m, n, k = share
    operands = []
    for rows, columns in ((m, k), (k, n)):
        operand = _own(workspace, machine, (len(pes), rows, columns), pes)
        if carries_data:
            one = rng.standard_normal((rows, columns), np.float32).astype(np.float16)
            workspace.write(operand, np.broadcast_to(one, (len(pes), rows, columns)))
        operands.append(operand)
    out = _own(workspace, machine, (len(pes), m, n), pes)
    events = workspace.device.engine.statistics().events
    start = time.perf_counter()
    result = workspace.launch(
        gemm_kernel, *operands, out, m, n, k, tile, grid=(len(pes),), pes=pes,
        carries_data=carries_data,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    return result, seconds, workspace.device.engine.statistics().events - events


def _decode(spec: LanguageBenchSpec, machine: Machine) -> LaunchResult:
    """Every row's keys and values lie in the slice of the PE that attends."""
    workspace = Workspace(machine)
    pes = list(machine.grid.pes())[: spec.decode_rows]
    heads = (spec.decode_rows, spec.group, spec.head_dim)
    tokens = (spec.decode_rows, spec.decode_tokens, spec.head_dim)
    small = [_own(workspace, machine, heads, pes) for _ in range(2)]
    large = [_own(workspace, machine, tokens, pes) for _ in range(2)]
    return workspace.launch(
        decode_kernel, small[0], *large, small[1], spec.decode_tokens, spec.head_dim**-0.5,
        spec.group, spec.head_dim, spec.decode_block,
        grid=(spec.decode_rows,), pes=pes, carries_data=False,
    )  # fmt: skip


def _own(
    workspace: Workspace, machine: Machine, shape: tuple[int, ...], pes: list[PeCoord]
) -> PlacedArray:
    """Return f16 whose first axis is dealt to PEs if parts are whole pages, else interleaved."""
    part_bytes = prod(shape[1:]) * float16.storage.itemsize
    pages = part_bytes // machine.spec.pe.mmu.page_bytes
    return workspace.reserve(shape, float16, pes, max(1, pages))


def _hbm_fraction(spec: LanguageBenchSpec, machine: Machine, decode: LaunchResult) -> float:
    """Keys and values over the time, as a share of what the slices can give in the long run."""
    num_bytes = 2 * spec.decode_rows * spec.decode_tokens * spec.head_dim * 2
    all_bytes_per_us = totals_of(machine).refreshed_hbm_bytes_per_us
    limit_bytes_per_us = all_bytes_per_us * spec.decode_rows / machine.grid.num_pes
    return num_bytes * PS_PER_US / (decode.latency_ps * limit_bytes_per_us)


def _steps_per_s(spec: LanguageBenchSpec, machine: Machine) -> float:
    """Every program's tile is the start of a page in its PE's own slice."""
    workspace = Workspace(machine)
    pes = list(machine.grid.pes())[: spec.programs]
    stride = machine.spec.pe.mmu.page_bytes // 4
    array = workspace.place(np.ones((spec.programs, stride), np.float32), pes)
    start = time.perf_counter()
    workspace.launch(
        step_kernel, array, spec.steps, stride, spec.tile, spec.tile,
        grid=(spec.programs,), pes=pes,
    )  # fmt: skip
    return spec.programs * spec.steps / (time.perf_counter() - start)
