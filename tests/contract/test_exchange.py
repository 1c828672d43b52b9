"""Exchanges: packets go there, answers come back, and a gate bounds how many are under way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.engine import Engine, EngineKind, EngineSpec, ServerSpec, TaskGraph, build_engine
from tilewright.errors import EngineError

FLIT_PS = 1_000
LATENCY_PS = 3_000
PACKET_FLITS = 4
PACKET_BYTES = 64 * PACKET_FLITS
RATE = 64_000  # one flit of 64 bytes takes 1000 ps


def two_ways(kind: EngineKind) -> tuple[Engine, int, int]:
    """A link there and one back, each on a route of its own."""
    engine = build_engine(kind, EngineSpec(64, PACKET_FLITS))
    routes = [
        engine.add_route([engine.add_server(ServerSpec(name, RATE, LATENCY_PS))])
        for name in ("there", "back")
    ]
    return engine, routes[0], routes[1]


def effects_of(engine: Engine, graph: TaskGraph) -> list[tuple[int, int]]:
    engine.submit(graph)
    engine.run()
    return engine.take_effects()


@every_engine
def test_a_read_sends_one_flit_and_gets_its_data_back(kind: EngineKind) -> None:
    engine, there, back = two_ways(kind)
    trip = engine.add_round_trip(there, back)
    graph = TaskGraph()
    graph.exchange(trip, PACKET_BYTES, effect=1, served_effect=2)
    served_ps = FLIT_PS + LATENCY_PS
    end_ps = served_ps + PACKET_FLITS * FLIT_PS + LATENCY_PS
    assert effects_of(engine, graph) == [(served_ps, 2), (end_ps, 1)]
    there_counts, back_counts = engine.statistics().routes
    assert (there_counts.bytes_in, back_counts.bytes_in) == (64, PACKET_BYTES)


@every_engine
@pytest.mark.parametrize("packets", [1, 3])
def test_what_is_read_crosses_what_is_inside_and_is_served_behind_it(
    kind: EngineKind, packets: int
) -> None:
    """The port inside is slower than the links: packets wait for it, one behind the other."""
    engine, there, back = two_ways(kind)
    port = engine.add_route([engine.add_server(ServerSpec("port", RATE // 2))])
    trip = engine.add_round_trip(there, back, inside=port)
    graph = TaskGraph()
    graph.exchange(trip, packets * PACKET_BYTES - 64, effect=1, served_effect=2)
    asked_ps = FLIT_PS + LATENCY_PS
    flits = packets * PACKET_FLITS - 1  # the last packet has one less
    served_ps = asked_ps + flits * 2 * FLIT_PS
    end_ps = served_ps + (PACKET_FLITS - 1) * FLIT_PS + LATENCY_PS
    assert effects_of(engine, graph) == [(served_ps, 2), (end_ps, 1)]
    there_counts, back_counts, port_counts = engine.statistics().routes
    assert there_counts.bytes_in == packets * 64
    assert port_counts.bytes_in == back_counts.bytes_in == packets * PACKET_BYTES - 64


@every_engine
def test_what_is_inside_has_one_queue_for_all_that_want_it(kind: EngineKind) -> None:
    engine, there, back = two_ways(kind)
    port = engine.add_route([engine.add_server(ServerSpec("port", RATE))])
    trip = engine.add_round_trip(there, back, inside=port)
    graph = TaskGraph()
    graph.hold(port, 50_000)
    graph.exchange(trip, PACKET_BYTES, served_effect=2)
    assert effects_of(engine, graph) == [(50_000 + PACKET_FLITS * FLIT_PS, 2)]


@every_engine
def test_a_way_inside_that_has_no_meaning_is_refused(kind: EngineKind) -> None:
    engine, there, back = two_ways(kind)
    with pytest.raises(EngineError, match="found inside = 1 of one that writes, expected what"):
        engine.add_round_trip(there, back, inside=back, writes=True)
    with pytest.raises(EngineError, match="found inside = 0 as out, too, expected what data"):
        engine.add_round_trip(there, back, inside=there)
    with pytest.raises(EngineError, match="found inside = 9, expected a route of this engine"):
        engine.add_round_trip(there, back, inside=9)


@every_engine
def test_a_write_sends_its_data_and_gets_one_flit_back(kind: EngineKind) -> None:
    engine, there, back = two_ways(kind)
    trip = engine.add_round_trip(there, back, writes=True)
    graph = TaskGraph()
    graph.exchange(trip, 3 * PACKET_BYTES, effect=1, served_effect=2)
    served_ps = 3 * PACKET_FLITS * FLIT_PS + LATENCY_PS
    assert effects_of(engine, graph) == [
        (served_ps, 2),
        (served_ps + FLIT_PS + LATENCY_PS, 1),
    ]
    there_counts, back_counts = engine.statistics().routes
    assert (there_counts.bytes_in, back_counts.bytes_in) == (3 * PACKET_BYTES, 3 * 64)


@every_engine
@given(num_bytes=st.integers(1, 9 * PACKET_BYTES))
def test_a_read_of_one_packet_equals_two_transfers_in_a_row(
    kind: EngineKind, num_bytes: int
) -> None:
    engine, there, back = two_ways(kind)
    trip = engine.add_round_trip(there, back)
    exchanged, chained = TaskGraph(), TaskGraph()
    size = min(num_bytes, PACKET_BYTES)
    exchanged.exchange(trip, size, effect=1)
    asked = chained.transfer(there, 1)
    chained.transfer(back, size, after=(asked,), effect=1)
    other, *_ = two_ways(kind)
    assert effects_of(engine, exchanged) == effects_of(other, chained)


@every_engine
@given(packets=st.integers(1, 12), window=st.integers(1, 14))
def test_a_gate_lets_so_many_packets_be_under_way(
    kind: EngineKind, packets: int, window: int
) -> None:
    engine, there, back = two_ways(kind)
    trip = engine.add_round_trip(there, back, gate=engine.add_gate(window))
    graph = TaskGraph()
    graph.exchange(trip, packets * PACKET_BYTES, effect=1)
    sent: list[int] = []
    returned: list[int] = []
    there_free = back_free = 0
    for number in range(packets):  # packet by packet, each at the first moment that it may
        start = max(there_free, returned[number - window] if number >= window else 0)
        there_free = start + FLIT_PS
        back_start = max(there_free + LATENCY_PS, back_free)
        back_free = back_start + PACKET_FLITS * FLIT_PS
        sent.append(start)
        returned.append(back_free + LATENCY_PS)
    assert effects_of(engine, graph) == [(returned[-1], 1)]


@every_engine
def test_at_a_gate_the_earlier_task_goes_first_whatever_the_order_of_submission(
    kind: EngineKind,
) -> None:
    ends = []
    for owners in ((0, 1), (1, 0)):
        engine, there, back = two_ways(kind)
        trip = engine.add_round_trip(there, back, gate=engine.add_gate(1))
        for owner in owners:
            graph = TaskGraph()
            graph.exchange(trip, 2 * PACKET_BYTES, delay_ps=5, effect=owner)
            engine.submit(graph, owner=owner)
        engine.run()
        ends.append(engine.take_effects())
    assert ends[0] == ends[1]
    assert [effect for _, effect in ends[0]] == [0, 1]


@every_engine
def test_wrong_numbers_are_refused_by_name(kind: EngineKind) -> None:
    engine, there, back = two_ways(kind)
    with pytest.raises(EngineError, match="round trip: found out = 7, expected a route"):
        engine.add_round_trip(7, back)
    with pytest.raises(EngineError, match="round trip: found gate = 0, expected a gate"):
        engine.add_round_trip(there, back, gate=0)
    with pytest.raises(EngineError, match="gate: found packets = 0"):
        engine.add_gate(0)
    graph = TaskGraph()
    graph.exchange(3, PACKET_BYTES)
    with pytest.raises(EngineError, match="task 0: found round trip 3, expected a round trip of"):
        engine.submit(graph)


@every_engine
def test_a_server_without_a_rate_is_on_no_round_trip(kind: EngineKind) -> None:
    engine, there, _ = two_ways(kind)
    unit = engine.add_route([engine.add_server(ServerSpec("unit"))])
    with pytest.raises(EngineError, match="round trip: found back = 2 through a server without"):
        engine.add_round_trip(there, unit)


@every_engine
def test_a_trace_of_one_owner_has_its_packets_alone(kind: EngineKind) -> None:
    traces = []
    for owners in (None, range(1), range(1, 2)):
        engine, there, back = two_ways(kind)
        trip = engine.add_round_trip(there, back)
        graph = TaskGraph()
        graph.exchange(trip, PACKET_BYTES)
        engine.set_trace(True, owners)
        for number in (0, 1):
            engine.submit(graph, owner=number)
        engine.run()
        traces.append(engine.take_trace())
    everything, *parts = traces
    for owner, part in enumerate(parts):
        assert part == [record for record in everything if record.packet_id >> 40 == owner]
        assert len(part) == 2
