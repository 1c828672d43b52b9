"""Queues whose waiting times are known: QU1 to QU6.

A unit of time has 1000 ps, so that rounding to a picosecond stays below 0.1 %. A customer of one
queue is a transfer whose flits take 1 ps each: its bytes are its service time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, exp

import numpy as np
import numpy.typing as npt

from tilewright.engine import EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.validation.engine_run import ends_of, finish, route_over, transfer_ends
from tilewright.validation.finding import Finding, Row, Times, confident, confident_mean, exact

UNIT_PS = 1_000
UNIT = "services"  # the unit of the table: mean service times
WARM_UP = 2_000  # customers that find the queue too short, since it starts empty
LONGEST_PS = 1 << 20  # of one service
SEEDS = range(1, 21)
TAIL = 2.0  # where the distribution is looked at: 1 / (mu - lambda) at load 0.5


Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]


def exponential(generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return generator.exponential(1.0, count)


def fixed(_generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return np.ones(count)


def uniform(generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """Between nothing and twice the mean: variance 1/3."""
    return generator.uniform(0.0, 2.0, count)


@dataclass(frozen=True, slots=True)
class QueueRun:
    """One queue: what customers waited and spent there after the warm-up, means in units."""

    wait: float
    stay: float
    customers: float  # there on average, from the server's own counters
    waits_long: float  # share of customers that wait longer than TAIL
    stays_long: float


@lru_cache(maxsize=64)
def run_queue(draw: Draw, load: float, count: int, seed: int, kind: EngineKind) -> QueueRun:
    """``count`` customers after the warm-up, of Poisson arrivals."""
    generator = np.random.default_rng(seed)
    total = WARM_UP + count
    arrive_ps = _arrivals(generator, load, total)
    serve_ps = _whole_ps(draw(generator, total))
    engine = build_engine(kind, EngineSpec(flit_bytes=1, packet_flits=LONGEST_PS))
    routes = np.full(total, route_over(engine, ServerSpec("queue", bytes_per_us=10**6)))
    stay_ps = transfer_ends(engine, routes, serve_ps, arrive_ps) - arrive_ps
    server = engine.statistics().server("queue")
    wait_ps = (stay_ps - serve_ps)[WARM_UP:]
    return QueueRun(
        wait=float(wait_ps.mean()) / UNIT_PS,
        stay=float(stay_ps[WARM_UP:].mean()) / UNIT_PS,
        customers=(server.queue_ps + server.busy_ps) / engine.now_ps,
        waits_long=float((wait_ps > TAIL * UNIT_PS).mean()),
        stays_long=float((stay_ps[WARM_UP:] > TAIL * UNIT_PS).mean()),
    )


def _arrivals(generator: np.random.Generator, rate: float, count: int) -> Times:
    return np.cumsum(generator.exponential(UNIT_PS / rate, count)).round().astype(np.int64)


def _whole_ps(services: npt.NDArray[np.float64]) -> Times:
    return np.maximum(1, (services * UNIT_PS).round()).astype(np.int64)


def markov_variance(load: float) -> float:
    """Of the mean wait of n customers of M/M/1, times n.

    >>> round(markov_variance(0.8))
    1976
    """
    return load * (2 + 5 * load - 4 * load**2 + load**3) / (1 - load) ** 4


def check_wait(
    kind: EngineKind, *, draw: Draw, load: float, expected: float, variance: float
) -> Finding:
    """As many customers as the sample-size law wants for a standard error of 1 %."""
    count = ceil(variance / (0.01 * expected) ** 2)
    found = run_queue(draw, load, count, 1, kind).wait
    return confident(expected, found, UNIT, standard_error=(variance / count) ** 0.5)


def check_repeated(
    kind: EngineKind, *, draw: Draw, field: str, expected: float, unit: str = UNIT
) -> Finding:
    """A mean of one figure over independent runs at load 0.5."""
    runs = [run_queue(draw, 0.5, 40_000, seed, kind) for seed in SEEDS]
    return confident_mean(expected, [getattr(run, field) for run in runs], unit)


def run_tandem(
    arrive_ps: Times, stages_ps: list[Times], kind: EngineKind
) -> tuple[Times, list[int]]:
    """Customers hold one server after the other: when each leaves, and all waiting per stage."""
    engine = build_engine(kind)
    names = (f"stage{stage}" for stage in range(len(stages_ps)))
    routes = [route_over(engine, ServerSpec(name)) for name in names]
    graph = TaskGraph()
    services = np.stack(stages_ps, axis=1).tolist()
    for customer, (at_ps, holds_ps) in enumerate(zip(arrive_ps.tolist(), services, strict=True)):
        task = graph.timer(at_ps)
        for route, hold_ps in zip(routes, holds_ps, strict=True):
            task = graph.hold(route, hold_ps, after=(task,))
        graph.timer(after=(task,), effect=customer)
    finish(engine, graph)
    leave_ps = ends_of(engine)
    return leave_ps, [server.wait_ps for server in engine.statistics().servers]


def check_markov_tandem(kind: EngineKind) -> Finding:
    rate, service_rates, count = 0.5, (1.0, 1.25), WARM_UP + 4_000
    means = []
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        arrive_ps = _arrivals(generator, rate, count)
        stages_ps = [_whole_ps(generator.exponential(1 / mu, count)) for mu in service_rates]
        leave_ps, _ = run_tandem(arrive_ps, stages_ps, kind)
        means.append(float((leave_ps - arrive_ps)[WARM_UP:].mean()) / UNIT_PS)
    expected = sum(1 / (service_rate - rate) for service_rate in service_rates)
    return confident_mean(expected, means, UNIT)


def check_fixed_tandem(kind: EngineKind) -> Finding:
    """What customers wait behind the first of four stages of one fixed service time."""
    arrive_ps = _arrivals(np.random.default_rng(1), 0.9, 3_000)
    stages_ps = [np.full(len(arrive_ps), UNIT_PS)] * 4
    _, (_, *later_ps) = run_tandem(arrive_ps, stages_ps, kind)
    return exact(0, sum(later_ps), "ps")


def check_pipeline(kind: EngineKind, *, tiles: int, stages: tuple[int, ...]) -> Finding:
    stages_ps = [np.full(tiles, stage_ps) for stage_ps in stages]
    leave_ps, _ = run_tandem(np.zeros(tiles, np.int64), stages_ps, kind)
    return exact(sum(stages) + (tiles - 1) * max(stages), int(leave_ps.max()), "ps")


def _waits(name: str, draw: Draw, cases: Iterable[tuple[float, float, float]]) -> Iterator[Row]:
    """Yield mean waits by load, with what is expected and its variance of one customer."""
    for load, expected, variance in cases:
        check = partial(check_wait, draw=draw, load=load, expected=expected, variance=variance)
        yield f"{name}, mean wait at load {load}", check


def oracles() -> Iterator[Row]:
    markov = (
        (load, expected, markov_variance(load)) for load, expected in ((0.5, 1.0), (0.8, 4.0))
    )
    yield from _waits("QU1 M/M/1", exponential, markov)
    for what, field, expected, unit in (
        ("mean stay", "stay", 2.0, UNIT),
        ("mean number of customers", "customers", 1.0, "customers"),
        ("share that stays over 2", "stays_long", exp(-1), "share"),
        ("share that waits over 2", "waits_long", 0.5 * exp(-1), "share"),
    ):
        mean = partial(check_repeated, draw=exponential, field=field, expected=expected, unit=unit)
        yield f"QU1 M/M/1, {what} at load 0.5", mean
    yield from _waits("QU2 M/D/1", fixed, ((0.5, 0.5, 3.4), (0.8, 2.0, 230.0)))
    general = partial(check_repeated, draw=uniform, field="wait", expected=2 / 3)
    yield "QU3 M/G/1, uniform service, mean wait at load 0.5", general
    yield "QU4 two M/M/1 in a row, mean stay", check_markov_tandem
    yield "QU5 four equal fixed services, wait behind the first", check_fixed_tandem
    for tiles, stages in ((100, (3, 5, 2)), (1000, (7, 1, 4, 7, 2))):
        name = f"QU6 {tiles} tiles through stages of {', '.join(map(str, stages))}"
        yield name, partial(check_pipeline, tiles=tiles, stages=stages)
