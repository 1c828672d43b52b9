"""Memories at the end of routes: an engine serves accesses as the memory alone does."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine, needs_both_engines
from tests.oracles_hbm.burst_model import Request
from tests.oracles_hbm.loads import HBM4_CLOCKS, cases, drive, slice_spec, timing_of
from tilewright.engine import Engine, EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.engine.dram.memory import BankedMemory, SimpleMemory
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec
from tilewright.errors import EngineError

FLIT_BYTES = 4
PACKET_FLITS = 6


def engine_with(
    kind: EngineKind, spec: BankedSpec | SimpleSpec, capacity_bytes: int, *, salt: int = 0
) -> tuple[Engine, int, dict[bool, int]]:
    """A memory, and the round trips to it: what reads, what writes."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS, salt))
    memory = engine.add_memory("memory", spec, capacity_bytes)
    link = engine.add_server(ServerSpec("link", bytes_per_us=10**9, latency_ps=1))
    out, back = engine.add_route([memory]), engine.add_route([link])
    return (
        engine,
        memory,
        {write: engine.add_round_trip(out, back, writes=write) for write in (False, True)},
    )


def graph_of(load: list[Request], trips: dict[bool, int]) -> TaskGraph:
    """One exchange for each access, with ids in the order of the accesses' numbers."""
    graph = TaskGraph()
    for request in sorted(load, key=lambda request: request.access_id):
        graph.exchange(
            trips[request.is_write],
            request.num_bytes,
            delay_ps=request.arrive_ps,
            served_effect=request.access_id,
            tag=request.address,
        )
    return graph


@every_engine
@settings(deadline=None)
@given(case=cases())
def test_an_engine_serves_a_load_as_the_memory_alone_does(
    kind: EngineKind, case: tuple[BankedSpec, list[Request]]
) -> None:
    spec, load = case
    engine, memory, trips = engine_with(kind, spec, spec.capacity_bytes)
    engine.submit(graph_of(load, trips))
    engine.run()
    by_id = sorted(load)  # that is how packets of one instant come to the door
    expected = drive(BankedMemory(spec, EngineKind.REFERENCE), by_id)
    served = {access_id: served.done_ps for access_id, served in expected.served.items()}
    assert {effect: at_ps for at_ps, effect in engine.take_effects()} == served
    assert engine.memory_counters(memory) == expected.counters
    assert engine.memory_openings(memory) == expected.openings


@every_engine
@given(times=st.lists(st.integers(0, 60), min_size=1, max_size=20))
def test_a_simple_memory_in_an_engine_is_the_memory_alone(
    kind: EngineKind, times: list[int]
) -> None:
    spec = SimpleSpec(pseudo_channels=2, interleave_bytes=8, bytes_per_us=4 * 10**5, latency_ps=7)
    load = [Request(t, n, n % 3 == 0, 5 * n, 1 + n % 20) for n, t in enumerate(sorted(times))]
    engine, _, trips = engine_with(kind, spec, 1000)
    engine.submit(graph_of(load, trips))
    engine.run()
    expected = drive(SimpleMemory(spec, EngineKind.REFERENCE), load)
    served = {access_id: served.done_ps for access_id, served in expected.served.items()}
    assert {effect: at_ps for at_ps, effect in engine.take_effects()} == served


def seen(engine: Engine, memory: int) -> tuple[object, ...]:
    """All that an engine shows of itself, but for the number of events."""
    statistics = engine.statistics()
    return (
        engine.now_ps,
        engine.take_effects(),
        engine.take_trace(),
        engine.take_memory_trace(),
        engine.memory_counters(memory),
        engine.memory_openings(memory),
        statistics.servers,
        statistics.routes,
    )


def crowd(
    kind: EngineKind,
    case: tuple[BankedSpec, list[Request]],
    seed: int,
    salt: int,
    stops_ps: list[int],
) -> list[object]:
    """Several requesters behind links with short buffers, gates and virtual channels."""
    spec, load = case
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS, salt))
    memory = engine.add_memory("memory", spec, spec.capacity_bytes)
    rate = 4 * 10**6 // (1 + seed % 3)
    links = [
        engine.add_server(
            ServerSpec(f"link{n}", rate, latency_ps=1 + n, buffer_flits=PACKET_FLITS + n)
        )
        for n in range(4)
    ]
    trips = {}
    for requester in range(2):
        gate = engine.add_gate((1, 2, 5, 40)[(seed >> requester) % 4])
        channels = (requester, requester, 0)
        out = engine.add_route([links[requester], links[2], memory], channels)
        back = engine.add_route([links[3], links[requester ^ 1]], requester)
        for write in (False, True):
            trips[requester, write] = engine.add_round_trip(out, back, gate=gate, writes=write)
    engine.set_trace(True)
    for requester in range(2):
        graph = TaskGraph()
        for request in load[requester::2]:
            address = min(request.address, max(0, spec.capacity_bytes - 90))
            num_bytes = min(spec.capacity_bytes, 1 + 3 * request.num_bytes)
            count = 2 if num_bytes % 2 == 0 and request.access_id % 2 else 1  # halves that overlap
            graph.exchange(
                trips[requester, request.is_write],
                num_bytes,
                delay_ps=request.arrive_ps,
                effect=request.access_id,
                served_effect=1000 + request.access_id,
                tag=address,
                segment_bytes=num_bytes // count if count > 1 else None,
                stride_bytes=num_bytes // count // 2 if count > 1 else 0,
            )
        engine.submit(graph, owner=requester)
    views: list[object] = []
    for stop_ps in stops_ps:
        engine.advance(stop_ps)
        views.append(seen(engine, memory))
    engine.run()
    return [*views, seen(engine, memory)]


@needs_both_engines
@settings(deadline=None)
@given(
    case=cases(),
    seed=st.integers(0, 99),
    salt=st.integers(0, 99),
    stops=st.lists(st.integers(0, 600), max_size=4),
)
def test_both_engines_show_the_same_of_a_crowd_in_front_of_a_memory_at_any_time(
    case: tuple[BankedSpec, list[Request]], seed: int, salt: int, stops: list[int]
) -> None:
    spec, _ = case
    if spec.capacity_bytes < 200:
        return
    stops_ps = sorted(stops)
    expected = crowd(EngineKind.REFERENCE, case, seed, 0, stops_ps)
    assert crowd(EngineKind.NATIVE, case, seed, salt, stops_ps) == expected


@every_engine
def test_a_write_is_seen_to_be_done_no_later_than_the_clock(kind: EngineKind) -> None:
    """The clock stops with the last answer, not with a look at the memory after it."""
    clocks = HBM4_CLOCKS | {"cl": 60, "cwl": 0}
    spec = replace(slice_spec(timing_of(clocks, 1)), drain_high_bursts=1, drain_low_bursts=0)
    engine, _, trips = engine_with(kind, spec, spec.capacity_bytes)
    engine.submit(graph_of([Request(0, 7, True, 0, 24)], trips))
    engine.run()
    ((done_ps, _),) = engine.take_effects()
    assert engine.now_ps == done_ps + 2


@every_engine
def test_an_access_outside_the_memory_is_refused(kind: EngineKind) -> None:
    spec = slice_spec(timing_of(HBM4_CLOCKS, 500))
    engine, _, trips = engine_with(kind, spec, 4096)
    for tag, num_bytes in ((4090, 7), (-1, 1), (0, 4097)):
        graph = TaskGraph()
        graph.exchange(trips[False], num_bytes, tag=tag)
        with pytest.raises(
            EngineError, match=f"task 0: found address .tag. {tag}, expected an acc"
        ):
            engine.submit(graph)


@every_engine
def test_what_is_no_memory_or_no_direction_is_refused(kind: EngineKind) -> None:
    engine = build_engine(kind)
    with pytest.raises(EngineError, match="memory 'm': found 7, expected a BankedSpec or Simple"):
        engine.add_memory("m", 7, 4096)  # type: ignore[arg-type]
    link = engine.add_route([engine.add_server(ServerSpec("link", bytes_per_us=64_000))])
    with pytest.raises(EngineError, match="round trip: found writes = 1, expected a bool"):
        engine.add_round_trip(link, link, writes=1)  # type: ignore[arg-type]


@every_engine
def test_a_memory_is_only_at_the_end_of_a_route(kind: EngineKind) -> None:
    engine = build_engine(kind)
    memory = engine.add_memory("memory", slice_spec(timing_of(HBM4_CLOCKS, 500)), 4096)
    link = engine.add_server(ServerSpec("link", bytes_per_us=64_000))
    with pytest.raises(EngineError, match="found memory 'memory' on the way, expected a memory on"):
        engine.add_route([memory, link])
