"""Queues with known waiting times: exact laws exactly, random ones within their error.

Times are in units of 1000 ps, so that rounding to a picosecond stays below 0.1 %. A customer is a
transfer whose flits take 1 ps each, or a hold: both are served for any whole number of ps.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tests.kinds import every_engine, needs_both_engines
from tilewright.engine import (
    AUTO,
    Auto,
    EngineKind,
    EngineSpec,
    ServerSpec,
    TaskGraph,
    build_engine,
)

UNIT_PS = 1_000
WARM_UP = 2_000  # customers that find the queue too short, since it starts empty
LARGEST_PS = 1 << 20  # of one service

Times = npt.NDArray[np.int64]


def arrivals_ps(generator: np.random.Generator, rate: float, count: int) -> Times:
    return np.cumsum(generator.exponential(UNIT_PS / rate, count)).round().astype(np.int64)


def whole_ps(services: npt.NDArray[np.float64]) -> Times:
    """Service times in units, as ps of which there is at least one."""
    return np.maximum(1, (services * UNIT_PS).round()).astype(np.int64)


def waits_ps(arrive_ps: Times, serve_ps: Times, kind: EngineKind | Auto) -> Times:
    """What each customer of one queue waits, in the order of arrival."""
    engine = build_engine(kind, EngineSpec(flit_bytes=1, packet_flits=LARGEST_PS))
    route = engine.add_route([engine.add_server(ServerSpec("queue", bytes_per_us=10**6))])
    count = len(arrive_ps)
    graph = TaskGraph()
    graph.transfers(
        np.full(count, route), num_bytes=serve_ps, delays_ps=arrive_ps, effects=np.arange(count)
    )
    engine.submit(graph)
    engine.run()
    ends_ps, customers = engine.take_effect_columns()
    ordered_ps = np.empty(count, np.int64)
    ordered_ps[customers] = ends_ps
    waited_ps = ordered_ps - serve_ps - arrive_ps
    assert engine.statistics().server("queue").wait_ps == int(waited_ps.sum())
    return waited_ps


def check_mean(mean: float, expected: float, error: float) -> None:
    """CI4: the sample is large enough to say something, and says what the law says."""
    assert error <= 0.01 * expected
    assert abs(mean - expected) <= 4 * error


Services = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]


def exponential(generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return generator.exponential(1.0, count)


def fixed(_generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return np.ones(count)


def uniform(generator: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    return generator.uniform(0.0, 2.0, count)


def random_queue(services: Services, load: float, count: int, seed: int) -> tuple[Times, Times]:
    generator = np.random.default_rng(seed)
    return arrivals_ps(generator, load, count), whole_ps(services(generator, count))


def mean_wait(services: Services, load: float, count: int, seed: int) -> float:
    """In units, of ``count`` customers after the warm-up, on the fastest engine there is."""
    queue = random_queue(services, load, WARM_UP + count, seed)
    return float(waits_ps(*queue, AUTO)[WARM_UP:].mean()) / UNIT_PS


def markov_variance(load: float) -> float:
    """The constant v of the variance v/n of the mean wait of n customers of M/M/1."""
    polynomial = 2 + 5 * load - 4 * load**2 + load**3
    return load * polynomial / (1 - load) ** 4


def test_the_sample_size_law_has_its_published_values() -> None:
    assert [round(markov_variance(load), 1) for load in (0.5, 0.8)] == [29.0, 1976.0]


@pytest.mark.parametrize(("load", "expected"), [(0.5, 1.0), (0.8, 4.0)])
def test_exponential_service_waits_as_in_m_m_1(load: float, expected: float) -> None:
    variance = markov_variance(load)
    count = int(variance / (0.01 * expected) ** 2) + 1
    mean = mean_wait(exponential, load, count, seed=11)
    check_mean(mean, expected, (variance / count) ** 0.5)


@pytest.mark.parametrize(("load", "expected", "variance"), [(0.5, 0.5, 3.4), (0.8, 2.0, 230.0)])
def test_fixed_service_waits_as_in_m_d_1(load: float, expected: float, variance: float) -> None:
    count = int(variance / (0.01 * expected) ** 2) + 1
    mean = mean_wait(fixed, load, count, seed=12)
    check_mean(mean, expected, (variance / count) ** 0.5)


def test_uniform_service_waits_as_in_m_g_1() -> None:
    load, deviation = 0.5, (1 / 3) ** 0.5
    expected = load / (2 * (1 - load)) * (1 + deviation**2)
    means = [mean_wait(uniform, load, 12_000, seed) for seed in range(20)]
    error = float(np.std(means, ddof=1)) / len(means) ** 0.5
    check_mean(float(np.mean(means)), expected, error)


@needs_both_engines
@pytest.mark.parametrize("services", [exponential, fixed, uniform])
def test_every_customer_waits_the_same_in_both_engines(services: Services) -> None:
    queue = random_queue(services, 0.8, 10_000, seed=4)
    native_ps = waits_ps(*queue, EngineKind.NATIVE)
    assert native_ps.max() > UNIT_PS
    assert np.array_equal(waits_ps(*queue, EngineKind.REFERENCE), native_ps)


def held_in_turn(
    arrive_ps: Times, stages_ps: list[Times], kind: EngineKind | Auto
) -> tuple[Times, list[int]]:
    """Customers that hold one server after the other: when each leaves, and waits per stage."""
    engine = build_engine(kind)
    routes = [
        engine.add_route([engine.add_server(ServerSpec(f"stage{stage}"))])
        for stage in range(len(stages_ps))
    ]
    graph = TaskGraph()
    columns = zip(arrive_ps.tolist(), *(stage_ps.tolist() for stage_ps in stages_ps), strict=True)
    for customer, (arrival_ps, *services_ps) in enumerate(columns):
        task = graph.timer(arrival_ps)
        for route, service_ps in zip(routes[:-1], services_ps[:-1], strict=True):
            task = graph.hold(route, hold_ps=service_ps, after=(task,))
        graph.hold(routes[-1], hold_ps=services_ps[-1], after=(task,), effect=customer)
    engine.submit(graph)
    engine.run()
    ends_ps, customers = engine.take_effect_columns()
    leave_ps = np.empty(len(arrive_ps), np.int64)
    leave_ps[customers] = ends_ps
    return leave_ps, [server.wait_ps for server in engine.statistics().servers]


def test_two_exponential_stages_take_as_long_as_two_queues() -> None:
    rate, service_rates = 0.5, (1.0, 1.25)
    expected = sum(1 / (service_rate - rate) for service_rate in service_rates)
    assert round(expected, 4) == 3.3333
    count = WARM_UP + 4_000
    means: list[float] = []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        arrive_ps = arrivals_ps(generator, rate, count)
        stages_ps = [whole_ps(generator.exponential(1 / mu, count)) for mu in service_rates]
        leave_ps, _ = held_in_turn(arrive_ps, stages_ps, AUTO)
        means.append(float((leave_ps - arrive_ps)[WARM_UP:].mean()) / UNIT_PS)
    error = float(np.std(means, ddof=1)) / len(means) ** 0.5
    check_mean(float(np.mean(means)), expected, error)


@every_engine
def test_behind_a_stage_of_equal_fixed_service_nobody_waits(kind: EngineKind) -> None:
    arrive_ps = arrivals_ps(np.random.default_rng(5), 0.9, 3_000)
    stages_ps = [np.full(len(arrive_ps), UNIT_PS)] * 4
    leave_ps, (first_ps, *later_ps) = held_in_turn(arrive_ps, stages_ps, kind)
    assert first_ps > 1_000 * UNIT_PS
    assert later_ps == [0, 0, 0]
    assert int((leave_ps - arrive_ps).sum()) == first_ps + 4 * UNIT_PS * len(arrive_ps)


@every_engine
def test_a_pipeline_takes_its_stages_once_and_the_slowest_for_each_further_tile(
    kind: EngineKind,
) -> None:
    tiles, times_ps = 100, (3, 5, 2)
    stages_ps = [np.full(tiles, time_ps) for time_ps in times_ps]
    leave_ps, _ = held_in_turn(np.zeros(tiles, np.int64), stages_ps, kind)
    assert leave_ps.max() == 505 == sum(times_ps) + (tiles - 1) * max(times_ps)
