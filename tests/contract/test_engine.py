"""One suite for every engine: what the specification promises, with numbers computed by hand.

The comments give the arithmetic. Flits have 8 bytes; a link of 1 has a flit time of 1 ps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from tests.engine_programs import rate_of
from tests.kinds import ENGINES
from tilewright.engine import (
    Arbitration,
    Engine,
    EngineKind,
    EngineSpec,
    PacketView,
    RouteStatistics,
    ServerSpec,
    ServerStatistics,
    TaskGraph,
    TraceRecord,
    build_engine,
)
from tilewright.engine.core import LAST_PS
from tilewright.errors import DeadlockError, EngineError, InternalError, ServerError, TimeLimitError

FLIT = 8
PACKET_FLITS = 4
PACKET = PACKET_FLITS * FLIT
OWNER = 2**40


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    found: EngineKind = request.param
    return found


@pytest.fixture
def engine(kind: EngineKind) -> Engine:
    built = build_engine(kind, EngineSpec(FLIT, PACKET_FLITS))
    built.set_trace(True)
    return built


def add_link(engine: Engine, name: str, flit_ps: int = 1, **fields: object) -> int:
    spec = ServerSpec(name, bytes_per_us=rate_of(flit_ps, FLIT))
    return engine.add_server(replace(spec, **fields))  # type: ignore[arg-type]


def add_unit(engine: Engine, name: str, **fields: object) -> int:
    """A server that is only held; its route has the same number as it if added in turn."""
    return engine.add_server(replace(ServerSpec(name), **fields))  # type: ignore[arg-type]


def graph_of(*transfers: tuple[int, int, int]) -> TaskGraph:
    """Transfers as (route, flits, delay), each with its place as effect."""
    graph = TaskGraph()
    for effect, (route, flits, delay_ps) in enumerate(transfers):
        graph.transfer(route, num_bytes=flits * FLIT, delay_ps=delay_ps, effect=effect)
    return graph


def ends_of(engine: Engine) -> dict[int, int]:
    """Run to the end; the time of each effect."""
    engine.run()
    return {effect: end_ps for end_ps, effect in engine.take_effects()}


def starts_at(engine: Engine, server: int) -> list[tuple[int, int]]:
    """(packet, start) in the order of grants."""
    trace = engine.take_trace()
    return [(record.packet_id, record.start_ps) for record in trace if record.server == server]


# -- order at one instant ------------------------------------------------------------------------


@pytest.mark.parametrize("arbitration", Arbitration)
def test_of_packets_ready_at_one_time_the_lower_id_starts_first(
    engine: Engine, arbitration: Arbitration
) -> None:
    link = add_link(engine, "link", arbitration=arbitration)
    route = engine.add_route([link])
    for owner in (2, 0, 1):
        engine.submit(graph_of((route, 3, 5)), owner=owner)
    engine.run()
    assert starts_at(engine, link) == [(0, 5), (OWNER, 8), (2 * OWNER, 11)]


def test_the_earlier_packet_starts_first_whatever_its_id(engine: Engine) -> None:
    link = add_link(engine, "link")
    route = engine.add_route([link])
    engine.submit(graph_of((route, 2, 4), (route, 2, 3)))
    engine.run()
    assert starts_at(engine, link) == [(1, 3), (0, 5)]


def test_an_arbiter_sees_all_that_arrives_at_its_instant(engine: Engine) -> None:
    first, second = add_link(engine, "first"), add_link(engine, "second")
    shared = add_link(engine, "shared", arbitration=Arbitration.ROUND_ROBIN)
    # both heads are at the shared link at 1; the input of the first link has the earlier slot
    by_second, by_first = engine.add_route([second, shared]), engine.add_route([first, shared])
    engine.submit(graph_of((by_second, 1, 0), (by_first, 1, 0)))
    engine.run()
    assert starts_at(engine, shared) == [(1, 1), (0, 2)]


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_program_that_wakes_and_sends_takes_part_in_that_instant(
    engine: Engine, arbitration: Arbitration
) -> None:
    link = add_link(engine, "link", arbitration=arbitration)
    route = engine.add_route([link])
    timer = TaskGraph()
    timer.timer(10)
    engine.submit(graph_of((route, 2, 10)), owner=1)
    engine.watch(engine.submit(timer, owner=0))
    assert engine.advance() == [0]
    assert engine.now_ps == 10
    woken = engine.submit(graph_of((route, 2, 0)), owner=0)
    engine.run()
    assert starts_at(engine, link) == [(woken, 10), (OWNER, 12)]  # the lower id, though later sent


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_packet_sent_at_a_limit_takes_part_in_that_instant(
    engine: Engine, arbitration: Arbitration
) -> None:
    link = add_link(engine, "link", arbitration=arbitration)
    route = engine.add_route([link])
    engine.submit(graph_of((route, 2, 10)), owner=1)
    assert engine.advance(until_ps=10) == []
    engine.submit(graph_of((route, 2, 0)), owner=0)
    engine.run()
    assert starts_at(engine, link) == [(0, 10), (OWNER, 12)]


def test_wake_ups_of_one_instant_come_together_by_id(engine: Engine) -> None:
    timers = TaskGraph()
    for _ in range(3):
        timers.timer(7)
    last = engine.submit(timers, owner=1) + 2
    first = engine.submit(timers, owner=0)
    for task_id in (last, first + 1, first):
        assert engine.watch(task_id)
    assert engine.advance() == [first, first + 1, last]
    assert engine.advance() == []


# -- the law of time -----------------------------------------------------------------------------


def test_a_plain_link_costs_its_flits_and_its_latency(engine: Engine) -> None:
    link = add_link(engine, "link", 3, latency_ps=20)
    route = engine.add_route([link])
    engine.submit(graph_of((route, 4, 5)))
    assert ends_of(engine) == {0: 5 + 4 * 3 + 20}
    assert engine.take_trace() == [TraceRecord(link, 0, ready_ps=5, start_ps=5, tail_ps=17)]


def test_a_head_goes_on_before_its_tail_is_there(engine: Engine) -> None:
    first, second = add_link(engine, "first", 2, latency_ps=5), add_link(engine, "second", 2)
    engine.submit(graph_of((engine.add_route([first, second]), 4, 0)))
    # first 0..8, head behind it at 2 + 5; second 7..15, exactly behind the last flit
    assert ends_of(engine) == {0: 15}
    assert engine.take_trace() == [
        TraceRecord(first, 0, ready_ps=0, start_ps=0, tail_ps=8),
        TraceRecord(second, 0, ready_ps=7, start_ps=7, tail_ps=15),
    ]


def test_a_slow_link_holds_the_fast_one_behind_it(engine: Engine) -> None:
    slow, fast = add_link(engine, "slow", 4, latency_ps=1), add_link(engine, "fast")
    engine.submit(
        graph_of((engine.add_route([slow, fast]), 3, 0), (engine.add_route([fast]), 1, 6))
    )
    # head at 5, tail at 13: fast is held 5..14; the other packet waits from 6 to 14
    assert ends_of(engine) == {0: 14, 1: 15}
    statistics = engine.statistics().server("fast")
    assert (statistics.busy_ps, statistics.held_ps, statistics.wait_ps) == (3 + 1, 9 + 1, 8)


def test_a_reassembling_server_waits_for_the_tail(engine: Engine) -> None:
    slow, fast = (
        add_link(engine, "slow", 4, latency_ps=1),
        add_link(engine, "fast", reassemble=True),
    )
    engine.submit(
        graph_of((engine.add_route([slow, fast]), 3, 0), (engine.add_route([fast]), 1, 6))
    )
    # whole at 13: fast 13..16; the other packet passes at 6
    assert ends_of(engine) == {0: 16, 1: 7}
    assert engine.statistics().server("fast").held_ps == 3 + 1


def test_a_route_may_pass_a_server_twice(engine: Engine) -> None:
    link = add_link(engine, "link", 3, latency_ps=1)
    engine.submit(graph_of((engine.add_route([link, link]), 3, 0)))
    # 0..9; the head is back at 4 and waits for its own tail: 9..18
    assert ends_of(engine) == {0: 19}


def test_a_transfer_is_cut_into_packets_with_contiguous_ids(engine: Engine) -> None:
    link = add_link(engine, "link", latency_ps=2)
    route = engine.add_route([link])
    graph = TaskGraph()
    graph.transfer(route, num_bytes=2 * PACKET + FLIT + 1, effect=7)
    graph.transfer(route, num_bytes=1)
    first_id = engine.submit(graph, owner=3)
    assert first_id == 3 * OWNER
    assert engine.task_id(graph, first_id, 1) == first_id + 3
    engine.run()
    # 4, 4 and 2 flits back to back, then one flit for a single byte
    ends = [(record.packet_id - first_id, record.tail_ps) for record in engine.take_trace()]
    assert ends == [(0, 4), (1, 8), (2, 10), (3, 11)]
    assert engine.take_effects() == [(12, 7)]
    statistics = engine.statistics()
    assert statistics.server("link").num_bytes == 2 * PACKET + FLIT + 2
    expected = 2 * PACKET + FLIT + 2
    assert statistics.routes == (RouteStatistics(4, expected, 4, expected),)


def test_an_owner_counts_its_own_packets_over_submissions(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link")])
    graph = graph_of((route, 9, 0), (route, 1, 0))  # 3 packets and 1
    assert [engine.submit(graph, owner=owner) for owner in (5, 2, 5)] == [
        5 * OWNER,
        2 * OWNER,
        5 * OWNER + 4,
    ]


# -- arbitration ---------------------------------------------------------------------------------


def shared_link(engine: Engine, arbitration: Arbitration) -> int:
    """The last link gets 0 and 1 from the source, 2 and 3 from link 0, 4 from link 1; 4 ps each."""
    first, second = (
        add_link(engine, "first", latency_ps=1),
        add_link(engine, "second", latency_ps=1),
    )
    shared = add_link(engine, "shared", 2, arbitration=arbitration)
    direct = engine.add_route([shared])
    by_first, by_second = engine.add_route([first, shared]), engine.add_route([second, shared])
    # by the first link they are ready at 2 and 4, by the second at 2
    engine.submit(
        graph_of(*((route, 2, 0) for route in (direct, direct, by_first, by_first, by_second)))
    )
    engine.run()
    return shared


def test_fifo_follows_ready_times_and_then_ids(engine: Engine) -> None:
    shared = shared_link(engine, Arbitration.FIFO)
    assert starts_at(engine, shared) == [(0, 0), (1, 4), (2, 8), (4, 12), (3, 16)]


def test_round_robin_takes_turns_over_the_inputs_with_the_source_first(engine: Engine) -> None:
    shared = shared_link(engine, Arbitration.ROUND_ROBIN)
    assert starts_at(engine, shared) == [(0, 0), (2, 4), (4, 8), (1, 12), (3, 16)]


def test_round_robin_takes_turns_over_the_channels_of_an_input(engine: Engine) -> None:
    link = add_link(engine, "link", arbitration=Arbitration.ROUND_ROBIN)
    routes = [engine.add_route([link], channel) for channel in (0, 1)]
    engine.submit(graph_of(*((routes[0], 1, 0) for _ in range(3)), (routes[1], 1, 0)))
    engine.run()
    assert starts_at(engine, link) == [(0, 0), (3, 1), (1, 2), (2, 3)]


def test_round_robin_knows_any_number_of_inputs(engine: Engine) -> None:
    links = [add_link(engine, f"link{n}") for n in range(150)]
    shared = add_link(engine, "shared", arbitration=Arbitration.ROUND_ROBIN)
    routes = [engine.add_route([link, shared]) for link in reversed(links)]
    engine.submit(graph_of(*((route, 1, 0) for route in [*routes, *routes])))
    engine.run()
    # 0..149 come at 1 by the links from the last to the first, 150..299 behind them at 2
    order = [*range(149, -1, -1), *range(299, 149, -1)]
    assert starts_at(engine, shared) == [(packet, 1 + n) for n, packet in enumerate(order)]


def test_a_packet_without_credits_stalls_until_they_are_back(engine: Engine) -> None:
    first = add_link(engine, "first", latency_ps=1, buffer_flits=4, credit_ps=2)
    last = add_link(engine, "last", latency_ps=1)
    route = engine.add_route([first, last])
    engine.submit(graph_of((route, 4, 0), (route, 4, 0)))
    # head at last at 2, tail leaves it at 6, credits are back at 8
    assert ends_of(engine) == {0: 7, 1: 15}
    assert starts_at(engine, first) == [(0, 0), (1, 8)]


def test_a_buffer_of_two_packets_lets_the_second_follow_at_once(engine: Engine) -> None:
    first = add_link(engine, "first", latency_ps=1, buffer_flits=8, credit_ps=2)
    route = engine.add_route([first, add_link(engine, "last", latency_ps=1)])
    engine.submit(graph_of((route, 4, 0), (route, 4, 0)))
    assert ends_of(engine) == {0: 7, 1: 11}


def test_a_last_hop_needs_no_credit(engine: Engine) -> None:
    only = add_link(engine, "only", buffer_flits=4, credit_ps=1000)
    route = engine.add_route([only])
    engine.submit(graph_of((route, 4, 0), (route, 4, 0)))
    assert ends_of(engine) == {0: 4, 1: 8}


def stalled_link(engine: Engine, other_channel: int, *, is_last_hop: bool) -> dict[int, int]:
    """Two packets of which the second stalls, and a third one behind them."""
    first = add_link(engine, "first", latency_ps=1, buffer_flits=4, credit_ps=2)
    last = add_link(engine, "last", latency_ps=1)
    route = engine.add_route([first, last])
    other = engine.add_route([first] if is_last_hop else [first, last], other_channel)
    engine.submit(graph_of((route, 4, 0), (route, 4, 0), (other, 4, 0)))
    return ends_of(engine)


def test_another_virtual_channel_passes_a_stalled_packet(engine: Engine) -> None:
    # first: 0..4, channel 1 at 4..8, the stalled one with its credits at 8..12
    assert stalled_link(engine, 1, is_last_hop=False) == {0: 7, 2: 11, 1: 15}


def test_behind_a_stalled_packet_waits_even_one_that_needs_no_credit(engine: Engine) -> None:
    # first: 0..4, idle until 8, 8..12, then the third one 12..16 and its latency
    assert stalled_link(engine, 0, is_last_hop=True) == {0: 7, 1: 15, 2: 17}


# -- tasks ---------------------------------------------------------------------------------------


def test_a_hold_occupies_its_server_and_ends_behind_the_latency(engine: Engine) -> None:
    unit = add_unit(engine, "unit", latency_ps=3)
    route = engine.add_route([unit])
    graph = TaskGraph()
    graph.hold(route, hold_ps=10, effect=0)
    graph.hold(route, hold_ps=5, effect=1)
    engine.submit(graph)
    assert ends_of(engine) == {0: 13, 1: 18}
    expected = ServerStatistics("unit", 2, 0, 15, 15, 10, 10, 1, 15)
    assert engine.statistics().server("unit") == expected


def test_holds_and_packets_of_one_server_wait_for_each_other(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link", 2)])
    graph = TaskGraph()
    graph.hold(route, hold_ps=5, effect=0)
    graph.transfer(route, num_bytes=3 * FLIT, effect=1)
    graph.hold(route, hold_ps=1, effect=2)
    engine.submit(graph)
    assert ends_of(engine) == {0: 5, 1: 11, 2: 12}


def test_a_timer_takes_its_delay_and_a_join_no_time(engine: Engine) -> None:
    graph = TaskGraph()
    short, long = graph.timer(5, effect=0), graph.timer(9, effect=1)
    join = graph.timer(after=(short, long), effect=2)
    graph.timer(4, after=(join,), effect=3)
    engine.submit(graph)
    engine.run()
    assert engine.take_effects() == [(5, 0), (9, 1), (9, 2), (13, 3)]


def test_a_delay_counts_from_the_last_condition(engine: Engine) -> None:
    signal = engine.add_signal("go")
    graph = TaskGraph()
    first = graph.timer(5)
    graph.timer(30, after=(first,), waits=((signal, 1),), effect=0)
    engine.submit(graph)
    engine.advance(until_ps=20)
    engine.raise_signal(signal)
    assert ends_of(engine) == {0: 50}


def test_a_task_waits_for_the_value_of_a_signal(engine: Engine) -> None:
    signal = engine.add_signal("tokens")
    graph = TaskGraph()
    for threshold in (3, 1, 2, 4):
        graph.timer(waits=((signal, threshold),), effect=threshold)
    for delay_ps, amount in ((10, 1), (20, 2)):
        graph.timer(delay_ps, raises=((signal, amount),))
    engine.submit(graph)
    assert engine.advance(until_ps=100) == []
    assert engine.take_effects() == [(10, 1), (20, 3), (20, 2)]  # at 20 by id, not by threshold
    assert engine.signal_value(signal) == 3
    engine.raise_signal(signal)
    assert ends_of(engine) == {4: 100}


def test_a_signal_that_is_high_enough_lets_a_task_start_at_once(engine: Engine) -> None:
    signal = engine.add_signal("ready")
    engine.raise_signal(signal, 5)
    graph = TaskGraph()
    graph.timer(3, waits=((signal, 5),), effect=0)
    engine.submit(graph)
    assert ends_of(engine) == {0: 3}


def test_a_later_submission_waits_for_tasks_of_another_owner(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(10, effect=0)
    ended = engine.submit(graph, owner=1)
    engine.advance(until_ps=15)
    running = engine.submit(graph, owner=1)
    follow = TaskGraph()
    first = follow.timer(1, effect=1)
    follow.timer(1, after=(first,), effect=2)
    engine.submit(follow, owner=0, after=(ended, running))
    engine.run()
    assert engine.take_effects() == [(10, 0), (25, 0), (26, 1), (27, 2)]


def test_the_effect_log_is_causal_and_then_by_id(engine: Engine) -> None:
    graph = TaskGraph()
    late = graph.timer(5, effect=0)
    graph.timer(5, effect=1)
    graph.timer(after=(late,), effect=2)  # made at 5 by task 0, yet its id is higher than that of 1
    engine.submit(graph, owner=1)
    other = TaskGraph()
    other.timer(5, effect=3)
    engine.submit(other, owner=0)
    engine.run()
    assert engine.take_effects() == [(5, 3), (5, 0), (5, 1), (5, 2)]


def test_a_task_that_a_completion_starts_runs_before_higher_ids(engine: Engine) -> None:
    graph = TaskGraph()
    first = graph.timer(5, effect=0)
    graph.timer(after=(first,), effect=1)
    engine.submit(graph, owner=0)
    other = TaskGraph()
    other.timer(5, effect=2)
    engine.submit(other, owner=1)
    engine.run()
    assert engine.take_effects() == [(5, 0), (5, 1), (5, 2)]


def test_effects_are_taken_once_and_also_as_columns(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(5, effect=3)
    engine.submit(graph)
    engine.run()
    times_ps, effects = engine.take_effect_columns()
    assert (times_ps.tolist(), effects.tolist()) == ([5], [3])
    assert engine.take_effects() == []


def test_watching_a_complete_task_says_so(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(5)
    task_id = engine.submit(graph)
    assert engine.watch(task_id)
    assert engine.advance() == [task_id]
    assert not engine.watch(task_id)
    assert engine.advance() == []


def test_a_limit_stops_the_clock_there(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(10, effect=0)
    task_id = engine.submit(graph)
    engine.watch(task_id)
    assert engine.advance(until_ps=9) == []
    assert (engine.now_ps, engine.take_effects()) == (9, [])
    assert engine.advance(until_ps=10) == [task_id]
    assert engine.now_ps == 10
    assert engine.advance(until_ps=40) == []
    assert engine.now_ps == 40


def test_work_submitted_later_starts_then(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link")])
    engine.advance(until_ps=100)
    engine.submit(graph_of((route, 2, 5)))
    assert ends_of(engine) == {0: 107}


# -- statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arbitration", Arbitration)
def test_statistics_by_hand(engine: Engine, arbitration: Arbitration) -> None:
    link = add_link(engine, "link", 2, latency_ps=50, arbitration=arbitration)
    route = engine.add_route([link])
    engine.submit(graph_of((route, 3, 0), (route, 2, 1), (route, 1, 2), (route, 1, 30)))
    engine.run()
    # starts 0, 6, 10, 30; tails 6, 10, 12, 32; waits 0, 5, 8, 0; two wait from 2 to 6
    expected = ServerStatistics(
        "link",
        packets=4,
        num_bytes=7 * FLIT,
        busy_ps=14,
        held_ps=14,
        wait_ps=13,
        queue_ps=13,
        max_queue=2,
        free_ps=32,
    )
    assert engine.statistics().servers == (expected,)
    assert engine.busy_ps() == [14]
    assert engine.now_ps == 82
    assert engine.statistics().routes == (RouteStatistics(4, 7 * FLIT, 4, 7 * FLIT),)


def test_a_queue_that_lasts_no_time_is_no_queue(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link", arbitration=Arbitration.ROUND_ROBIN)])
    engine.submit(graph_of((route, 1, 0), (route, 1, 0)))
    engine.run()
    # both enter at 0, one starts at once: one waits
    assert engine.statistics().server("link").max_queue == 1


def test_a_trace_is_only_there_when_asked_for(kind: EngineKind) -> None:
    engine = build_engine(kind, EngineSpec(FLIT, PACKET_FLITS))
    link = add_link(engine, "link")
    route = engine.add_route([link])
    engine.submit(graph_of((route, 1, 0)))
    engine.run()
    assert engine.take_trace() == []
    engine.set_trace(True)
    engine.submit(graph_of((route, 1, 9)))
    engine.run()
    assert engine.take_trace() == [TraceRecord(link, 1, 10, 10, 11)]
    assert engine.take_trace() == []


# -- servers in Python ---------------------------------------------------------------------------


@dataclass
class Imitation:
    """Does in Python what a link does."""

    flit_ps: int
    latency_ps: int

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        del now_ps
        return packet.num_flits * self.flit_ps, self.latency_ps


def run_crossing(kind: EngineKind, *, imitates: bool) -> Engine:
    """Three routes that meet at one link, which is native or written in Python."""
    engine = build_engine(kind, EngineSpec(FLIT, PACKET_FLITS))
    engine.set_trace(True)
    before, behind = add_link(engine, "before", 3, latency_ps=2), add_link(engine, "behind", 1)
    service = Imitation(2, 5) if imitates else None
    link = add_link(engine, "link", 2, latency_ps=0 if imitates else 5, service=service)
    routes = [engine.add_route(path) for path in ([before, link], [link, behind], [link])]
    engine.submit(graph_of(*((routes[n % 3], 1 + n % 7, (5 * n) % 17) for n in range(20))))
    engine.run()
    return engine


def test_a_python_server_that_imitates_a_link_equals_it(kind: EngineKind) -> None:
    native, imitated = (run_crossing(kind, imitates=imitates) for imitates in (False, True))
    # a link that never has to choose grants ahead of time, so the records come in another order
    assert sorted(imitated.take_trace()) == sorted(native.take_trace())
    assert imitated.take_effects() == native.take_effects()
    assert imitated.statistics() == native.statistics()


class Recorder:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[PacketView, int]] = []

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        self.seen.append((packet, now_ps))
        return 7, 2


def test_a_python_server_sees_each_packet_once_at_its_start(engine: Engine) -> None:
    recorder = Recorder()
    unit = engine.add_server(ServerSpec("unit", service=recorder))
    graph = TaskGraph()
    graph.transfer(engine.add_route([unit]), num_bytes=PACKET + 9, delay_ps=3, tag=42, effect=0)
    engine.submit(graph, owner=1)
    assert ends_of(engine) == {0: 3 + 7 + 7 + 2}
    assert recorder.seen == [
        (PacketView(OWNER, OWNER, 0, 4, PACKET, 42), 3),
        (PacketView(OWNER + 1, OWNER, 1, 2, 9, 42, PACKET), 10),
    ]


def test_what_a_python_server_adds_to_the_wire_comes_before_the_first_flit(engine: Engine) -> None:
    first = add_link(engine, "first", 1, service=Recorder())  # 7 ps, of which 3 are the wire's
    last = add_link(engine, "last")
    engine.submit(graph_of((engine.add_route([first, last]), 3, 0)))
    # held 0..7, the head leaves at 5 and is there at 7, the tail at 9: last 7..10
    assert ends_of(engine) == {0: 10}


def test_a_hold_does_not_ask_the_python_server(engine: Engine) -> None:
    recorder = Recorder()
    graph = TaskGraph()
    graph.hold(engine.add_route([add_unit(engine, "unit", service=recorder)]), hold_ps=4, effect=0)
    engine.submit(graph)
    assert ends_of(engine) == {0: 4}
    assert recorder.seen == []


@dataclass
class Answer:
    """Returns whatever it was given; a text is raised."""

    value: object

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
        del packet, now_ps
        if isinstance(self.value, str):
            raise ValueError(self.value)  # noqa: TRY004  # any error will do
        return self.value  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no such row", r"ValueError \(no such row\) raised for packet 0:0"),
        (None, r"found None returned for packet 0:0 \(2 flits, 16 bytes, tag 0\) at 3 ps"),
        ((1.5, 2), r"found \(1\.5, 2\) returned"),
        ((-1, 2), r"found \(-1, 2\) returned"),
        ((3, 2), r"expected hold_ps >= 4, the time of 2 flits of 2 ps"),
    ],
)
def test_a_python_server_that_fails_stops_the_run_with_its_name(
    engine: Engine, value: object, message: str
) -> None:
    link = add_link(engine, "odd", 2, service=Answer(value))
    engine.submit(graph_of((engine.add_route([link]), 2, 3)))
    with pytest.raises(ServerError, match=rf"server 'odd': .*{message}"):
        engine.run()
    with pytest.raises(EngineError, match="one that stopped at 3 ps"):
        engine.run()


# -- what cannot go on ---------------------------------------------------------------------------


def ring(engine: Engine, channels: Sequence[Sequence[int]]) -> None:
    """Three packets that each fill the buffer that the one before them needs."""
    links = [add_link(engine, f"ring{n}", buffer_flits=4) for n in range(3)]
    for n in range(3):
        route = engine.add_route([links[n], links[(n + 1) % 3], links[(n + 2) % 3]], channels[n])
        engine.submit(graph_of((route, 4, 0)), owner=n)


def test_a_ring_of_full_buffers_is_reported_with_its_cycle(engine: Engine) -> None:
    ring(engine, [(0, 0, 0)] * 3)
    with pytest.raises(DeadlockError) as caught:
        engine.run()
    assert caught.value.cycle == (
        "packet 0:0 in front of 'ring1'",
        "packet 1:0 in front of 'ring2'",
        "packet 2:0 in front of 'ring0'",
        "packet 0:0 in front of 'ring1'",
    )
    space = "4 flits of channel 0 behind 'ring1', held by packet 1:0 in front of 'ring2'"
    assert f"packet 0:0 in front of 'ring1' waits for {space}" in caught.value.waiters
    assert "task 0:0 waits for 1 of its packets" in caught.value.waiters


def test_a_second_channel_breaks_the_ring(engine: Engine) -> None:
    ring(engine, [(0, 0, 1), (0, 1, 1), (1, 1, 1)])
    engine.run()
    assert len(engine.take_effects()) == 3


def test_waiting_for_a_signal_that_nobody_raises_is_a_deadlock(engine: Engine) -> None:
    signal = engine.add_signal("never")
    graph = TaskGraph()
    waiter = graph.timer(waits=((signal, 2),))
    graph.timer(after=(waiter,))
    engine.submit(graph)
    assert engine.advance(until_ps=5) == []  # with a limit the caller may yet raise it
    with pytest.raises(
        DeadlockError, match=r"signal 'never' \(0 of 2\); no submitted task raises it"
    ):
        engine.run()


def test_tasks_that_wait_for_each_other_are_a_cycle(engine: Engine) -> None:
    one, two = engine.add_signal("one"), engine.add_signal("two")
    graph = TaskGraph()
    graph.timer(waits=((one, 1),), raises=((two, 1),))
    graph.timer(waits=((two, 1),), raises=((one, 1),))
    engine.submit(graph)
    with pytest.raises(DeadlockError) as caught:
        engine.run()
    assert caught.value.cycle == ("task 0:0", "task 0:1", "task 0:0")


def test_a_step_beyond_the_last_time_is_refused(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link", 10)])
    engine.submit(graph_of((route, 1, LAST_PS - 5)))
    with pytest.raises(TimeLimitError, match=r"found a time of 2\^62 ps or more for packet 0:0"):
        engine.run()


def test_the_last_time_is_reached(engine: Engine) -> None:
    route = engine.add_route([add_link(engine, "link", 10)])
    engine.submit(graph_of((route, 1, LAST_PS - 10)))
    engine.run()
    assert engine.now_ps == LAST_PS


# -- conservation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "amount", "rule", "found", "expected"),
    [
        ("num_bytes", 1, "server bytes", 41, 40),
        ("stretch_ps", -1, "busy time", 5, 4),
        ("stretch_ps", 100, "utilisation", 105, 6),
        ("wait_ps", -100, "waiting time", -95, 0),
        ("wait_ps", 1, "queue integral", 5, 6),
        ("queue_ps", 1, "queue integral", 6, 5),
        ("credits", -1, "credits", 3, 4),
    ],
)
def test_a_seeded_defect_breaks_its_conservation_rule(
    engine: Engine, counter: str, amount: int, rule: str, found: int, expected: int
) -> None:
    link = add_link(engine, "link", buffer_flits=4)
    route = engine.add_route([link, add_link(engine, "last", 1)])
    engine.submit(graph_of((route, 4, 0), (route, 1, 0)))
    engine.run()
    # link: 0..4, then 5..6 with the credits of the packet that has left the last link at 5
    engine.core.tamper(link, counter, amount)
    where = f"conservation of {rule}, server 'link', at 7 ps"
    with pytest.raises(InternalError, match=f"{where}: found {found}, expected {expected}; "):
        engine.statistics()


def test_a_busy_time_beyond_the_time_that_passed_breaks_a_rule(engine: Engine) -> None:
    link = add_link(engine, "link")
    engine.submit(graph_of((engine.add_route([link]), 4, 0)))
    engine.run()
    engine.core.tamper(link, "busy_ps", 1)
    with pytest.raises(InternalError, match=r"conservation of utilisation, server 'link'.*found 5"):
        engine.statistics()
