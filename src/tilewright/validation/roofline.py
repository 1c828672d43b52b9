"""Floors that no run may beat, and limits that large runs come near: RO1 to RO6."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from tilewright.device.block import num_bytes_of
from tilewright.device.build import Device, build_device
from tilewright.device.dma import Access
from tilewright.device.gemm import build_gemm
from tilewright.engine import EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.machine.spec import DotArraySpec, GemmSpec, SystolicSpec
from tilewright.machine.totals import totals_of
from tilewright.units import PS_PER_NS, PS_PER_S
from tilewright.validation.engine_run import finish, machine_named, route_over, transfer_ps
from tilewright.validation.finding import Finding, Row, at_least, exact, printed, ramp, rate_inside

SEED = 1
NUM_RUNS = 20
PE = PeCoord(0, 0, 0)
TERA = 10**12
INTERVAL_PS = 3_900_000  # of refresh
INTERVALS = 20
SLICE_GB = 256  # nominal, of one PE
SLICE_PEAK = Fraction("1747.6") / 8  # HB9, dealt over the slices of a cube
REGION_BYTES = 2**22  # between the operands of a product


def _device(kind: EngineKind) -> Device:
    """A PE and its slice, with the links between them."""
    machine = machine_named("ahbm")
    dma, controller = (machine.node_of(node, PE) for node in (NodeKind.PE_DMA, NodeKind.HBM_CTRL))
    out = machine.route(dma, controller, Traffic.REQUEST, PE.pe)
    back = machine.route(controller, dma, Traffic.RESPONSE, PE.pe)
    return build_device(machine, kind, links=[link for link, _ in (*out, *back)])


def _over_floor(taken_ps: int, *, moved_bytes: int, flop: int = 0) -> Fraction:
    """Return a time as a multiple of the least that one PE and its slice allow."""
    compute_ps = Fraction(flop * PS_PER_S, 8_192 * 10**9)
    memory_ps = Fraction(moved_bytes * PS_PER_NS, SLICE_GB)
    return taken_ps / max(compute_ps, memory_ps)


# -- RO1 -----------------------------------------------------------------------------------------


def _run_product(m: int, n: int, k: int, tile: int, kind: EngineKind) -> Fraction:
    """Return a tiled f16 product's time on one PE, as a multiple of its floor.

    Loads, multiplies and stores wait only for their operands.
    """
    device = _device(kind)
    reads, writes = (device.pe_access(PE, PE, access) for access in (Access.READ, Access.WRITE))
    unit = build_gemm("gemm", machine_named("ahbm").spec.pe.gemm)
    gemm = route_over(device.engine, ServerSpec("gemm"))
    graph, moved = TaskGraph(), 0
    for row in _tiles(m, tile):
        for column in _tiles(n, tile):
            parts = [
                (2 * row * deep, 2 * deep * column, unit.hold_ps(row, column, deep, "f16"))
                for deep in _tiles(k, tile)
            ]
            last = None
            for left_bytes, right_bytes, hold_ps in parts:
                left = graph.exchange(reads, left_bytes, tag=moved)
                right = graph.exchange(reads, right_bytes, tag=moved + REGION_BYTES)
                after = (left, right) if last is None else (left, right, last)
                last = graph.hold(gemm, hold_ps, after=after)
                moved += left_bytes + right_bytes
            stored = () if last is None else (last,)
            graph.exchange(writes, 2 * row * column, after=stored, tag=moved + 2 * REGION_BYTES)
            moved += 2 * row * column
    taken_ps = finish(device.engine, graph)
    return _over_floor(taken_ps, moved_bytes=moved, flop=2 * m * n * k)


def _tiles(size: int, tile: int) -> list[int]:
    return [min(tile, size - start) for start in range(0, size, tile)]


def check_products(kind: EngineKind) -> Finding:
    """Random products and tiles: the one that comes nearest to its floor."""
    generator = np.random.default_rng(SEED)
    ratios = []
    for _ in range(NUM_RUNS):
        m, n, k = generator.integers(1, 513, 3).tolist()
        tile = int(2 ** generator.integers(5, 9))
        ratios.append(_run_product(m, n, k, tile, kind))
    return at_least(1, min(ratios), "x floor")


def check_streams(kind: EngineKind, *, access: Access) -> Finding:
    """Random accesses by a PE to its slice, some of them at once: the nearest to the floor."""
    generator = np.random.default_rng(SEED)
    ratios = []
    for _ in range(NUM_RUNS):
        device = _device(kind)
        trip = device.pe_access(PE, PE, access)
        sizes = generator.integers(1, 2**18, int(generator.integers(1, 9))).tolist()
        graph = TaskGraph()
        for number, size in enumerate(sizes):
            graph.exchange(trip, size, tag=number * 2**18)
        ratios.append(_over_floor(finish(device.engine, graph), moved_bytes=sum(sizes)))
    return at_least(1, min(ratios), "x floor")


# -- RO2 to RO5 ----------------------------------------------------------------------------------


def check_ridge(_kind: EngineKind) -> Finding:
    return printed("295.2", Fraction(989 * TERA) / Fraction("3.35e12"), "FLOP/B")


def check_machine_ridge(_kind: EngineKind) -> Finding:
    """8.192 TFLOP/s over 256 GB/s a PE, from the totals of the default machine."""
    totals = totals_of(machine_named("ahbm"))
    return exact(32, Fraction(totals.f16_flop_per_s, totals.hbm_bytes_per_us * 10**6), "FLOP/B")


def _stream_ps(num_bytes: int, bytes_per_us: int, kind: EngineKind) -> int:
    """Return the time of so many bytes, once over a link of that rate."""
    memory = ServerSpec("memory", bytes_per_us)
    return transfer_ps(kind, [memory], num_bytes, EngineSpec(flit_bytes=10**6))


def check_decode(kind: EngineKind, *, batch: int, figure: str) -> Finding:
    """70 G parameters of 2 bytes go once over 3.35 TB/s for a token of each sequence."""
    step_ps = _stream_ps(2 * 70 * 10**9, 3_350_000, kind)
    return printed(figure, Fraction(batch * PS_PER_S, step_ps), "tokens/s")


def check_pass(kind: EngineKind) -> Finding:
    """200 G parameters of 2 bytes over 32 devices of 1.2 TB/s."""
    pass_ps = _stream_ps(2 * 200 * 10**9 // 32, 1_200_000, kind)
    return printed("10.42", Fraction(pass_ps, 10**9), "ms")


def check_intensity(_kind: EngineKind, *, batch: int, dtype: str, expected: int) -> Finding:
    """Of a product of the batch with weights that are read once."""
    n = k = 4096
    weight_bytes = num_bytes_of("weights", n * k, dtype)
    return exact(expected, Fraction(2 * batch * n * k, weight_bytes), "FLOP/B")


# -- RO6 -----------------------------------------------------------------------------------------


def check_large_product(kind: EngineKind, *, spec: GemmSpec, size: int, share: str) -> Finding:
    """A square product as one hold of the unit, as a share of the unit's peak."""
    unit = build_gemm("gemm", spec)
    engine = build_engine(kind)
    graph = TaskGraph()
    graph.hold(route_over(engine, ServerSpec("gemm")), unit.hold_ps(size, size, size, "f16"))
    taken_ps = finish(engine, graph)
    cells = spec.rows * spec.columns * (spec.depth if spec.kind == "dot_array" else 1)
    rate = Fraction(2 * size**3 * PS_PER_S, taken_ps)
    return ramp(Fraction(share), rate / (2 * cells * spec.hz), "of peak")


def check_long_read(kind: EngineKind) -> Finding:
    """A PE reads its slice for twenty refresh intervals, through its DMA and network."""
    device = _device(kind)
    num_bytes = (INTERVALS + 2) * INTERVAL_PS * SLICE_GB // PS_PER_NS
    graph = TaskGraph()
    graph.exchange(device.pe_access(PE, PE, Access.READ), num_bytes)
    device.engine.set_trace(True)
    finish(device.engine, graph)
    done_ps = np.array([record.done_ps for record in device.engine.take_memory_trace()])
    packet_bytes = device.machine.spec.packet_bytes
    last_ps = (1 + INTERVALS) * INTERVAL_PS
    return ramp(SLICE_PEAK, rate_inside(done_ps, packet_bytes, INTERVAL_PS, last_ps), "GB/s")


def oracles() -> Iterator[Row]:
    yield f"RO1 {NUM_RUNS} tiled products, nearest to the floor", check_products
    for access in Access:
        name = f"RO1 {NUM_RUNS} {access.value} streams, nearest to the floor"
        yield name, partial(check_streams, access=access)
    yield "RO2 ridge of 989 TFLOP/s and 3.35 TB/s", check_ridge
    yield "RO2 ridge of the default machine", check_machine_ridge
    for batch, figure in ((1, "23.93"), (8, "191.43")):
        name = f"RO3 decoding 70 G parameters, batch {batch}"
        yield name, partial(check_decode, batch=batch, figure=figure)
    yield "RO4 one pass over 200 G parameters on 32 devices", check_pass
    for batch, dtype, expected in ((1, "f16", 1), (8, "f8e4m3", 16), (4, "f32", 2)):
        check = partial(check_intensity, batch=batch, dtype=dtype, expected=expected)
        yield f"RO5 decode intensity, batch {batch}, {dtype}", check
    default = partial(check_large_product, spec=DotArraySpec(), size=2048, share="1")
    yield "RO6 product of 2048 on the dot array", default
    cells = SystolicSpec(rows=128, columns=128)
    systolic = partial(check_large_product, spec=cells, size=1024, share="0.801")
    yield "RO6 product of 1024 on a systolic array of 128", systolic
    yield "RO6 long read of a slice by its PE", check_long_read
