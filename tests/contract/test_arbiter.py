"""Servers that have to choose: what their events and counters must not depend on."""

import pytest

from tests.kinds import every_engine
from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    PacketView,
    ServerSpec,
    TaskGraph,
    build_engine,
)

FLIT_BYTES = 4
RATE = FLIT_BYTES * 1_000_000  # a flit takes 1 ps
PACKET_FLITS = 6
PACKET_BYTES = PACKET_FLITS * FLIT_BYTES


RIVAL, FIRST, SECOND, BYSTANDER = range(4)


class AtOnce:
    """Takes no time, and delivers 1 ps later."""

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:  # noqa: ARG002
        return 0, 1


def stalled_pair(kind: EngineKind) -> tuple[Engine, TaskGraph]:
    """Two packets on one link, the second without a credit while a rival holds up the first."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    fast, other, slow, whole = (
        engine.add_server(server)
        for server in (
            ServerSpec("fast", RATE, latency_ps=1, buffer_flits=PACKET_FLITS),
            ServerSpec("other", RATE, latency_ps=1),
            ServerSpec("slow", RATE // 2, latency_ps=2, buffer_flits=4 * PACKET_FLITS),
            ServerSpec("whole", RATE, latency_ps=3, reassemble=True),
        )
    )
    graph = TaskGraph()
    graph.transfer(engine.add_route([other, slow, whole]), PACKET_BYTES, effect=RIVAL)
    route = engine.add_route([fast, slow, whole])
    graph.transfer(route, PACKET_BYTES, effect=FIRST)
    graph.transfer(route, PACKET_BYTES, effect=SECOND)
    return engine, graph


@every_engine
@pytest.mark.parametrize("num_bystanders", range(16))
def test_a_credit_moves_no_packet_however_many_events_there_are(
    kind: EngineKind, num_bystanders: int
) -> None:
    """Where its events are stored, a core may run out of space in the middle of a hop."""
    engine, graph = stalled_pair(kind)
    for number in range(num_bystanders):
        bystander = TaskGraph()
        bystander.timer(10_000, effect=BYSTANDER)
        engine.submit(bystander, owner=number + 1)
    engine.submit(graph)
    engine.run()
    # "slow" takes 12 ps: from 2 on, from 14 on, and from 28 on, for the credit of 26 is 2 ps away;
    # then 2 ps to "whole", 6 ps through it and 3 ps out
    expected = [(2 + 12 + 11, RIVAL), (14 + 12 + 11, FIRST), (28 + 12 + 11, SECOND)]
    assert engine.take_effects()[: len(expected)] == expected


@every_engine
def test_a_packet_that_starts_at_once_never_was_in_a_queue_that_lasted(kind: EngineKind) -> None:
    """Even if somebody looks at the counters at the instant of its arrival."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    link = engine.add_server(ServerSpec("link", RATE, arbitration=Arbitration.ROUND_ROBIN))
    graph = TaskGraph()
    graph.transfer(engine.add_route([link]), PACKET_BYTES, delay_ps=5)
    engine.submit(graph)
    engine.advance(5)  # it is ready, and the grants of this instant are to come
    assert engine.statistics().server("link").packets == 0
    engine.run()
    counts = engine.statistics().server("link")
    assert (counts.packets, counts.max_queue, counts.queue_ps) == (1, 0, 0)


@every_engine
def test_packets_that_start_at_one_instant_leave_no_queue_behind(kind: EngineKind) -> None:
    """Even if somebody looks at the counters before they start."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    at_once = ServerSpec("at once", service=AtOnce(), arbitration=Arbitration.ROUND_ROBIN)
    graph = TaskGraph()
    graph.transfer(engine.add_route([engine.add_server(at_once)]), 3 * PACKET_BYTES, delay_ps=5)
    engine.submit(graph)
    engine.advance(5)
    assert engine.statistics().server("at once").packets == 0
    engine.run()
    counts = engine.statistics().server("at once")
    assert (counts.packets, counts.wait_ps, counts.max_queue, counts.queue_ps) == (3, 0, 0, 0)


@every_engine
def test_packets_that_wait_are_counted_in_whatever_order_their_inputs_come(
    kind: EngineKind,
) -> None:
    """Of three inputs the second wins while the others wait; each wait counts from its arrival."""
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, PACKET_FLITS))
    inputs = [engine.add_server(ServerSpec(name, RATE, latency_ps=1)) for name in "abc"]
    merge = engine.add_server(ServerSpec("merge", RATE, arbitration=Arbitration.ROUND_ROBIN))
    graph = TaskGraph()
    for server, delay_ps in zip(inputs, (3, 0, 1), strict=True):
        route = engine.add_route([server, merge])
        graph.transfer(route, PACKET_BYTES, delay_ps=delay_ps, effect=delay_ps)
    engine.submit(graph)
    engine.run()
    counts = engine.statistics().server("merge")
    # ready at 2 (b), 3 (c), 5 (a); b goes at 2, c at 8, a at 14
    assert [effect for _, effect in engine.take_effects()] == [0, 1, 3]
    assert (counts.wait_ps, counts.queue_ps, counts.max_queue) == (5 + 9, 5 + 9, 2)
