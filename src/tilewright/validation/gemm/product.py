"""Cycles of products on both GEMM laws, beside tables and stepped models: GE1 to GE5."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.device.gemm import DotArray, SystolicArray, build_gemm
from tilewright.engine import EngineKind, ServerSpec, TaskGraph, build_engine
from tilewright.machine.spec import DotArraySpec, SystolicSpec
from tilewright.validation.engine_run import finish, route_over
from tilewright.validation.finding import Finding, Row, exact, printed
from tilewright.validation.gemm.model import run_dot_array, run_systolic

NUM_SHAPES = 200
SEED = 1
NARROW, WIDE = 2, 4  # products of a narrow dtype in a step, cycles of a wide one
PACES: dict[str, Any] = {"narrow_speed": NARROW, "wide_slowdown": WIDE}

Matrix = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Case:
    """A product on a systolic array, with the published figures."""

    law: str
    m: int
    n: int
    k: int
    rows: int
    columns: int
    last_cycle: int
    utilisation: str

    @property
    def array(self) -> SystolicArray:
        spec = SystolicSpec(rows=self.rows, columns=self.columns)
        return SystolicArray("gemm", spec)


CASES = (
    Case("GE1", 64, 64, 64, 16, 16, 1503, "0.681"),
    Case("GE2", 128, 128, 128, 128, 128, 381, "0.336"),
    Case("GE3", 1024, 1024, 1024, 128, 128, 81791, "0.801"),
    Case("GE4", 100, 70, 256, 32, 32, 3815, "0.459"),
    Case("GE5", 1, 4096, 4096, 128, 128, 139199, "0.0074"),
)


def check_last_cycle(_kind: EngineKind, *, case: Case) -> Finding:
    """The zero-based index of the last cycle, which the published tables state."""
    found = case.array.last_cycle_index(case.m, case.n, case.k, "f16")
    return exact(case.last_cycle, found, "cycle")


def check_utilisation(_kind: EngineKind, *, case: Case) -> Finding:
    """Products over cells times that index: the published convention."""
    cycles = case.array.last_cycle_index(case.m, case.n, case.k, "f16")
    found = Fraction(case.m * case.n * case.k, case.rows * case.columns * cycles)
    return printed(case.utilisation, found, "of peak")


@dataclass(frozen=True, slots=True)
class Shape:
    """A random product and a random array for it."""

    left: Matrix
    right: Matrix
    spec: DotArraySpec
    dtype: str

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.left.shape[0], self.right.shape[1], self.left.shape[1]

    @property
    def pace(self) -> tuple[int, int]:
        """Products of a step, and cycles of it."""
        return {"f8e4m3": (NARROW, 1), "f16": (1, 1), "f32": (1, WIDE)}[self.dtype]


def _shapes() -> Iterator[Shape]:
    generator = np.random.default_rng(SEED)
    for _ in range(NUM_SHAPES):
        m, n, k = generator.integers(1, (17, 17, 33)).tolist()
        rows, columns, depth, fill = generator.integers((2, 2, 1, 0), (9, 9, 9, 20)).tolist()
        spec = DotArraySpec(rows=rows, columns=columns, depth=depth, fill_cycles=fill, **PACES)
        left, right = (generator.integers(-9, 10, size) for size in ((m, k), (k, n)))
        dtype = ("f8e4m3", "f16", "f32")[int(generator.integers(3))]
        yield Shape(left, right, spec, dtype)


def check_dot_arrays(_kind: EngineKind) -> Finding:
    """Shapes whose cycles differ from a model that makes every multiply-add."""
    wrong = 0
    for shape in _shapes():
        products, step_cycles = shape.pace
        spec = shape.spec
        step, fill = (spec.rows, spec.columns, spec.depth * products), spec.fill_cycles
        model = run_dot_array(
            shape.left, shape.right, shape=step, step_cycles=step_cycles, fill_cycles=fill
        )
        is_right = np.array_equal(model.product, shape.left @ shape.right)
        cycles = DotArray("gemm", spec).cycles(*shape.sizes, shape.dtype)
        wrong += not is_right or cycles != model.num_cycles
    return exact(0, wrong, "shapes")


def check_systolic_arrays(_kind: EngineKind) -> Finding:
    """Shapes whose cycles differ from a model that moves every operand from cell to cell."""
    wrong = 0
    for shape in _shapes():
        products, beat_cycles = shape.pace
        rows, columns = shape.spec.rows, shape.spec.columns
        model = run_systolic(shape.left, shape.right, rows=rows, columns=columns, products=products)
        is_right = np.array_equal(model.product, shape.left @ shape.right)
        spec = SystolicSpec(rows=rows, columns=columns, **PACES)
        cycles = SystolicArray("gemm", spec).cycles(*shape.sizes, shape.dtype)
        wrong += not is_right or cycles != model.num_cycles * beat_cycles
    return exact(0, wrong, "shapes")


def check_tiles(kind: EngineKind, *, tiles: int, side: int, bytes_per_us: int) -> Finding:
    """Load, multiply and store of equal tiles in a row, as QU6 has it."""
    unit = build_gemm("gemm", DotArraySpec())
    engine = build_engine(kind)
    load = route_over(engine, ServerSpec("load", bytes_per_us))
    store = route_over(engine, ServerSpec("store", bytes_per_us))
    gemm = route_over(engine, ServerSpec("gemm"))
    hold_ps = unit.hold_ps(side, side, side, "f16")
    graph = TaskGraph()
    for _ in range(tiles):
        there = graph.transfer(load, 2 * _tile_bytes(side))
        done = graph.hold(gemm, hold_ps, after=(there,))
        graph.transfer(store, _tile_bytes(side), after=(done,))
    found_ps = finish(engine, graph)
    load_ps, store_ps = (parts * _tile_bytes(side) * 10**6 // bytes_per_us for parts in (2, 1))
    stages_ps = (load_ps, hold_ps, store_ps)
    return exact(sum(stages_ps) + (tiles - 1) * max(stages_ps), found_ps, "ps")


def _tile_bytes(side: int) -> int:
    """Of f16."""
    return 2 * side * side


def oracles() -> Iterator[Row]:
    for case in CASES:
        name = f"{case.law} {case.m} x {case.n} x {case.k} on {case.rows} x {case.columns}"
        yield f"{name}: last cycle", partial(check_last_cycle, case=case)
        yield f"{name}: utilisation", partial(check_utilisation, case=case)
    yield f"GE {NUM_SHAPES} shapes on a dot array: cycles unlike its steps", check_dot_arrays
    systolic = f"GE {NUM_SHAPES} shapes on a systolic array: cycles unlike its cells"
    yield systolic, check_systolic_arrays
    for what, side, rate in (("multiply", 128, 512_000), ("load", 64, 64_000)):
        check = partial(check_tiles, tiles=50, side=side, bytes_per_us=rate)
        yield f"QU6 50 tiles of {side}^3, bound by {what}", check
