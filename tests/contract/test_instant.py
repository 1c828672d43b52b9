"""The order inside an instant, and the last instants of all, by cases whose result is known."""

import pytest

from tests.engine_programs import rate_of
from tests.kinds import ENGINES
from tests.oracles_hbm.loads import HBM4_CLOCKS, slice_spec, timing_of
from tilewright.engine import Engine, EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.engine.core import LAST_ACCESS_PS, LAST_PS
from tilewright.engine.dram.spec import BankedRefreshSpec, BankedSpec, RefreshScope, SimpleSpec
from tilewright.errors import DeadlockError, EngineError, TimeLimitError

FLIT_BYTES = 8
SIMPLE = SimpleSpec(pseudo_channels=1, interleave_bytes=8, bytes_per_us=8 * 10**6, latency_ps=0)
CAPACITY_BYTES = 4096


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    kind: EngineKind = request.param
    return build_engine(kind, EngineSpec(FLIT_BYTES, packet_flits=1))


def add_link(engine: Engine, name: str, buffer_flits: int | None = None) -> int:
    spec = ServerSpec(name, bytes_per_us=rate_of(1, FLIT_BYTES), buffer_flits=buffer_flits)
    return engine.add_server(spec)


def refreshed() -> BankedSpec:
    """A memory that refreshes all the time."""
    timing = timing_of(HBM4_CLOCKS, 1)
    return slice_spec(timing, BankedRefreshSpec(RefreshScope.ALL_BANKS, 500, 100, 50))


def test_a_memory_takes_in_all_that_there_is_before_a_credit_of_that_instant_acts(
    engine: Engine,
) -> None:
    """Two packets a link: the second ones start when the memory has taken in both first ones."""
    links = [add_link(engine, name, buffer_flits=1) for name in ("west", "east")]
    memory = engine.add_memory("memory", SIMPLE, CAPACITY_BYTES)
    graph = TaskGraph()
    for link in links:
        graph.transfer(engine.add_route([link, memory]), num_bytes=2 * FLIT_BYTES)
    engine.set_trace(True)
    engine.submit(graph)
    engine.run()
    started = [(record.start_ps, record.server) for record in engine.take_trace()]
    west, east = links
    at_1_ps = [(1, memory), (1, memory), (1, west), (1, east)]
    assert started == [(0, west), (0, east), *at_1_ps, (2, memory), (2, memory)]


def test_a_deadlock_is_reported_at_the_last_delivery(engine: Engine) -> None:
    """A packet that needs the space that it has itself holds up the second of two others.

    Those come to the ring at 10 and 20 ps, it comes there again at 13. The first of them leaves the
    ring at 11 ps, and is delivered a latency later.
    """
    ring = engine.add_server(
        ServerSpec("ring", rate_of(1, FLIT_BYTES), latency_ps=12, buffer_flits=1)
    )
    slow = engine.add_server(ServerSpec("slow", rate_of(10, FLIT_BYTES)))
    graph = TaskGraph()
    graph.transfer(engine.add_route([ring, ring, slow]), num_bytes=FLIT_BYTES)
    graph.transfer(engine.add_route([slow, ring]), num_bytes=2 * FLIT_BYTES)
    engine.submit(graph)
    with pytest.raises(DeadlockError, match="engine at 23 ps: found no events left"):
        engine.run()
    assert engine.statistics().now_ps == 11 + 12


def test_the_queue_integral_is_exact_over_times_beyond_half_of_all(engine: Engine) -> None:
    """Six packets wait for 100 ps and a little, and are counted in the middle of that."""
    route = engine.add_route([add_link(engine, "link")])
    graph = TaskGraph()
    graph.hold(route, hold_ps=100)
    for _ in range(6):
        graph.transfer(route, num_bytes=FLIT_BYTES)
    graph.timer(2**61)
    engine.submit(graph)
    engine.advance(5)
    assert engine.statistics().server("link").queue_ps == 6 * 5
    engine.run()
    found = engine.statistics().server("link")
    assert found.wait_ps == found.queue_ps == sum(100 + place for place in range(6))


def read_at(engine: Engine, spec: BankedSpec | SimpleSpec, at_ps: int) -> None:
    memory = engine.add_memory("memory", spec, CAPACITY_BYTES)
    back = engine.add_route([add_link(engine, "back")])
    trip = engine.add_round_trip(engine.add_route([memory]), back, writes=False)
    graph = TaskGraph()
    graph.exchange(trip, FLIT_BYTES, delay_ps=at_ps)
    engine.submit(graph)
    engine.run()


@pytest.mark.parametrize("spec", [SIMPLE, refreshed()], ids=["simple", "banked"])
def test_a_memory_serves_its_last_access_as_any_other(
    engine: Engine, spec: BankedSpec | SimpleSpec
) -> None:
    """The refreshes of 26 days without an access cost no time to simulate."""
    read_at(engine, spec, LAST_ACCESS_PS)
    assert LAST_ACCESS_PS < engine.now_ps < LAST_ACCESS_PS + 1000


@pytest.mark.parametrize("spec", [SIMPLE, refreshed()], ids=["simple", "banked"])
def test_an_access_after_the_last_one_is_refused(
    engine: Engine, spec: BankedSpec | SimpleSpec
) -> None:
    with pytest.raises(TimeLimitError) as caught:
        read_at(engine, spec, LAST_ACCESS_PS + 1)
    assert str(caught.value) == (
        "memory 'memory': found packet 0:0 at 2305843009213693953 ps, expected accesses up to "
        "2305843009213693952 ps; use shorter times"
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_data_that_are_done_beyond_the_last_time_are_refused(kind: EngineKind) -> None:
    """Packets of a TiB at a byte a microsecond: each takes half of the time that is left."""
    engine = build_engine(kind, EngineSpec(flit_bytes=2**20, packet_flits=2**20))
    slow = SimpleSpec(1, interleave_bytes=2**40, bytes_per_us=1, latency_ps=0)
    route = engine.add_route([engine.add_memory("memory", slow, 2**60)])
    graph = TaskGraph()
    graph.transfer(route, num_bytes=9 * 2**40, delay_ps=LAST_ACCESS_PS)
    engine.submit(graph)
    with pytest.raises(TimeLimitError, match=r"found a time of 2\^62 ps or more for packet 0:2 at"):
        engine.run()


@pytest.mark.parametrize("time_ps", [2**62, 2**63 - 1])
def test_a_time_from_2_to_the_62_on_is_refused_wherever_it_comes_from(
    engine: Engine, time_ps: int
) -> None:
    route = engine.add_route([add_link(engine, "link")])
    late, long = TaskGraph(), TaskGraph()
    late.timer(time_ps)
    long.hold(route, hold_ps=time_ps)
    with pytest.raises(EngineError, match=f"until_ps = {time_ps}, expected an int in 0..{LAST_PS}"):
        engine.advance(time_ps)
    engine.submit(long)
    with pytest.raises(TimeLimitError, match=r"server 'link': found a time of 2\^62 ps or more"):
        engine.run()
    other = build_engine(engine.kind)
    with pytest.raises(
        TimeLimitError, match=r"engine: found a time of 2\^62 ps or more for task 0"
    ):
        other.submit(late)
    assert other.now_ps == 0


def test_a_hold_of_a_memory_is_refused(engine: Engine) -> None:
    memory = engine.add_memory("memory", SIMPLE, CAPACITY_BYTES)
    graph = TaskGraph()
    graph.hold(engine.add_route([memory]), hold_ps=5)
    with pytest.raises(EngineError) as caught:
        engine.submit(graph)
    assert str(caught.value) == (
        "task graph, task 0: found a hold of memory 'memory', expected a server that is no "
        "memory; read or write it, or hold a link to it"
    )
    engine.run()
