import signal as os_signal
from collections.abc import Callable
from types import FrameType
from typing import cast

import numpy as np
import pytest

from tilewright.engine import (
    Engine,
    EngineKind,
    EngineSpec,
    PacketView,
    ServerSpec,
    TaskGraph,
)
from tilewright.engine.reference.core import Core
from tilewright.errors import DeadlockError, EngineError, InternalError, TimeLimitError
from tilewright.native import native_core
from tilewright.units import MAX_PS

LINK_RATE = 64_000  # one flit of 64 bytes takes 1000 ps
PACKET_PS = 16_000


class Interrupting:
    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:  # noqa: ARG002
        raise KeyboardInterrupt


def add_link(engine: Engine, name: str = "link", latency_ps: int = 0) -> int:
    """A link, and the route over it alone."""
    engine.add_server(ServerSpec(name, bytes_per_us=LINK_RATE, latency_ps=latency_ps))
    return engine.add_route([name])


def transfer(route: int, num_bytes: int = 1024) -> TaskGraph:
    graph = TaskGraph()
    graph.transfer(route, num_bytes=num_bytes)
    return graph


def timer(delay_ps: int) -> TaskGraph:
    graph = TaskGraph()
    graph.timer(delay_ps)
    return graph


def test_a_watched_task_is_reported_when_it_ends(engine: Engine) -> None:
    first_id = engine.submit(transfer(add_link(engine, latency_ps=7)))
    assert engine.watch(first_id)
    assert engine.advance() == [first_id]
    assert engine.now_ps == PACKET_PS + 7
    assert not engine.watch(first_id)
    assert engine.advance() == []


def test_ids_belong_to_their_owner_and_count_packets(engine: Engine) -> None:
    graph = transfer(add_link(engine), num_bytes=3000)
    graph.timer()
    assert engine.submit(graph, owner=5) == 5 << 40
    assert engine.submit(graph, owner=2**22) == 2**62
    first_id = engine.submit(graph, owner=5)
    assert first_id == (5 << 40) + 4
    assert engine.task_id(graph, first_id, 1) == first_id + 3


def test_there_is_no_task_behind_the_last_one(engine: Engine) -> None:
    graph = timer(1)
    first_id = engine.submit(graph)
    with pytest.raises(EngineError, match=r"index = 1, expected an int in 0\.\.0"):
        engine.task_id(graph, first_id, 1)


def test_a_graph_may_follow_tasks_of_others(engine: Engine) -> None:
    first_id = engine.submit(timer(100))
    follower_id = engine.submit(timer(10), owner=1, after=[first_id])
    engine.watch(follower_id)
    assert engine.advance() == [follower_id]
    assert engine.now_ps == 110


def test_a_limit_stops_time_there_and_later_work_goes_on(engine: Engine) -> None:
    engine.submit(timer(100))
    assert engine.advance(60) == []
    assert engine.now_ps == 60
    engine.run()
    assert engine.now_ps == 100


def test_time_never_goes_back(engine: Engine) -> None:
    engine.advance(60)
    with pytest.raises(EngineError, match="until_ps = 59, expected a time from now on, 60 ps"):
        engine.advance(59)
    assert engine.advance(60) == []


def test_a_limit_leaves_time_to_raise_a_signal(engine: Engine) -> None:
    signal = engine.add_signal("go")
    graph = TaskGraph()
    graph.timer(5, waits=((signal, 2),))
    engine.submit(graph)
    engine.advance(50)
    engine.raise_signal(signal, 2)
    engine.run()
    assert (engine.now_ps, engine.signal_value(signal)) == (55, 2)


def test_effects_come_in_event_order_as_pairs_and_as_columns(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(20, effect=2)
    graph.timer(10, effect=1)
    engine.submit(graph)
    engine.run()
    assert engine.take_effects() == [(10, 1), (20, 2)]
    assert engine.take_effects() == []
    engine.submit(graph)
    engine.run()
    times, effects = engine.take_effect_columns()
    assert times.dtype == effects.dtype == np.dtype(np.int64)
    assert (times.tolist(), effects.tolist()) == ([30, 40], [1, 2])
    assert [column.size for column in engine.take_effect_columns()] == [0, 0]


def test_a_trace_has_a_record_per_grant_and_only_while_it_is_on(engine: Engine) -> None:
    graph = transfer(add_link(engine), num_bytes=2048)
    engine.submit(graph)
    engine.run()
    assert engine.take_trace() == []
    engine.set_trace(True)
    engine.submit(graph)
    engine.run()
    records = engine.take_trace()
    assert [(r.server, r.packet_id, r.ready_ps, r.start_ps, r.tail_ps) for r in records] == [
        (0, 2, 32_000, 32_000, 48_000),
        (0, 3, 32_000, 48_000, 64_000),
    ]


def test_a_trace_as_rows_has_the_fields_of_its_records(engine: Engine) -> None:
    engine.set_trace(True)
    engine.submit(transfer(add_link(engine), num_bytes=2048))
    engine.run()
    rows, memory_rows = engine.take_trace_rows()
    assert rows.tolist() == [[0, 0, 0, 0, 16_000], [0, 1, 0, 16_000, 32_000]]
    assert memory_rows.shape == (0, 5)
    assert engine.take_trace_rows()[0].shape == (0, 5)


def test_waiting_for_a_signal_that_nobody_raises_is_a_deadlock(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(waits=((engine.add_signal("go"), 2),))
    engine.submit(graph, owner=1)
    with pytest.raises(DeadlockError) as caught:
        engine.run()
    line = "task 1:0 waits for signal 'go' (0 of 2); no submitted task raises it"
    assert caught.value.waiters == (line,)
    assert caught.value.cycle == ()
    assert line in str(caught.value)


def ring(engine: Engine) -> None:
    """Four links whose buffers hold one packet, each feeding the next: nobody can move."""
    for number in range(4):
        spec = ServerSpec(f"ring{number}", bytes_per_us=LINK_RATE, buffer_flits=16)
        engine.add_server(spec)
    graph = TaskGraph()
    for number in range(4):
        servers = [(number + hop) % 4 for hop in range(3)]
        graph.transfer(engine.add_route(servers), num_bytes=1024)
    engine.submit(graph)


def test_a_ring_of_full_buffers_is_a_deadlock_that_shows_its_cycle(engine: Engine) -> None:
    ring(engine)
    with pytest.raises(DeadlockError) as caught:
        engine.run()
    cycle = caught.value.cycle
    assert cycle == (
        "packet 0:0 in front of 'ring1'",
        "packet 0:1 in front of 'ring2'",
        "packet 0:2 in front of 'ring3'",
        "packet 0:3 in front of 'ring0'",
        "packet 0:0 in front of 'ring1'",
    )
    assert "cycle: " + " -> ".join(cycle) in str(caught.value)
    assert (
        "packet 0:0 in front of 'ring1' waits for 16 flits of channel 0 behind 'ring1', "
        "held by packet 0:1 in front of 'ring2'"
    ) in caught.value.waiters


def test_after_an_error_only_results_can_be_read(engine: Engine) -> None:
    ring(engine)
    with pytest.raises(DeadlockError) as caught:
        engine.run()
    first_line = str(caught.value).split("\n")[0]
    stopped = f"engine: found one that stopped at 16000 ps: DeadlockError: {first_line}, "
    attempts: tuple[Callable[[], object], ...] = (
        engine.advance,
        engine.run,
        lambda: engine.submit(timer(1)),
        lambda: engine.watch(0),
        lambda: engine.add_server(ServerSpec("late")),
        lambda: engine.add_route([0]),
        lambda: engine.add_signal("late"),
        lambda: engine.set_trace(True),
    )
    for attempt in attempts:
        with pytest.raises(EngineError) as refused:
            attempt()
        assert str(refused.value).startswith(stopped)
    assert engine.now_ps == engine.statistics().now_ps == 16_000


def test_a_submission_beyond_the_last_time_stops_the_engine(engine: Engine) -> None:
    engine.advance(5)
    with pytest.raises(TimeLimitError):
        engine.submit(timer(MAX_PS))
    with pytest.raises(
        EngineError, match="one that stopped at 5 ps: TimeLimitError: engine: found a time"
    ):
        engine.run()


def test_an_interrupt_in_a_python_server_stops_the_engine(engine: Engine) -> None:
    engine.add_server(ServerSpec("python", bytes_per_us=LINK_RATE, service=Interrupting()))
    engine.submit(transfer(engine.add_route(["python"])))
    with pytest.raises(KeyboardInterrupt):
        engine.run()
    with pytest.raises(EngineError, match="one that stopped at 0 ps: interrupted, expected"):
        engine.advance()


def interrupt_soon() -> None:
    def handler(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    os_signal.signal(os_signal.SIGVTALRM, handler)
    os_signal.setitimer(os_signal.ITIMER_VIRTUAL, 0.02)


def test_an_interrupt_in_the_core_stops_the_engine(engine: Engine, kind: EngineKind) -> None:
    links = [add_link(engine, f"link{number}") for number in range(16)]
    route = engine.add_route(links)
    num_tasks = 200_000 if kind is EngineKind.NATIVE else 10_000
    zeros = np.zeros(num_tasks, np.int64)
    graph = TaskGraph()
    graph.transfers(
        zeros + route,
        num_bytes=zeros + 1024,
        delays_ps=PACKET_PS * np.arange(num_tasks),
        effects=zeros,
    )
    engine.submit(graph)
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        engine.run()
    assert 0 < engine.now_ps < num_tasks * PACKET_PS
    with pytest.raises(EngineError, match=f"one that stopped at {engine.now_ps} ps: interrupted"):
        engine.run()
    assert 0 < engine.statistics().servers[0].packets < num_tasks


def engine_with_core(kind: EngineKind) -> tuple[Core, Engine]:
    spec = EngineSpec()
    native = kind is EngineKind.NATIVE
    make = native_core().Core if native else Core
    core = cast("Core", make(spec.flit_bytes, spec.packet_flits, spec.arrival_salt))
    return core, Engine(core, kind, spec)


@pytest.mark.parametrize(
    ("counter", "message"),
    [
        ("num_bytes", "server bytes, server 'link', at 32000 ps: found 2049, expected 2048"),
        ("busy_ps", "utilisation, server 'link', at 32000 ps: found 32001, expected 32000"),
        ("queue_ps", "queue integral, server 'link', at 32000 ps: found 16001, expected 16000"),
        ("wait_ps", "queue integral, server 'link', at 32000 ps: found 16000, expected 16001"),
    ],
)
def test_a_broken_rule_is_found_when_nothing_is_left(
    kind: EngineKind, counter: str, message: str
) -> None:
    core, engine = engine_with_core(kind)
    engine.submit(transfer(add_link(engine), num_bytes=2048))
    core.tamper(0, counter, 1)
    with pytest.raises(InternalError, match=f"conservation of {message}"):
        engine.run()
    with pytest.raises(EngineError, match="one that stopped"):
        engine.run()


def run_and_check(engine: Engine) -> None:
    engine.run()  # a small run leaves the rules to whoever reads its results
    engine.check_rules()


def test_a_lost_credit_is_found(kind: EngineKind) -> None:
    core, engine = engine_with_core(kind)
    engine.add_server(ServerSpec("west", bytes_per_us=LINK_RATE, buffer_flits=32))
    engine.add_server(ServerSpec("east", bytes_per_us=LINK_RATE))
    engine.submit(transfer(engine.add_route(["west", "east"])))
    engine.advance(1)
    core.tamper(0, "credits", -1)
    with pytest.raises(InternalError, match=r"credits, server 'west', .* found 31, expected 32"):
        run_and_check(engine)


def test_small_runs_on_a_big_machine_are_checked_now_and_then(kind: EngineKind) -> None:
    core, engine = engine_with_core(kind)
    first, *_ = [add_link(engine, f"link{number}") for number in range(40)]
    graph = transfer(first)
    core.tamper(39, "queue_ps", 1)
    engine.submit(graph)
    assert engine.advance() == []  # a few events do not pay for a look at 40 servers
    with pytest.raises(InternalError, match="queue integral, server 'link39'"):
        engine.statistics()
    for _ in range(80):
        engine.submit(graph)
    with pytest.raises(InternalError, match="queue integral, server 'link39'"):
        engine.advance()


def test_the_end_of_a_run_is_always_checked(kind: EngineKind) -> None:
    core, engine = engine_with_core(kind)
    first, *_ = [add_link(engine, f"link{number}") for number in range(40)]
    core.tamper(39, "queue_ps", 1)
    engine.submit(transfer(first))
    with pytest.raises(InternalError, match="queue integral, server 'link39'"):
        engine.run()
