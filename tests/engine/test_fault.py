from collections.abc import Callable

import pytest

from tilewright.engine import Engine, ServerSpec, TaskGraph
from tilewright.engine.core import LAST_PS
from tilewright.engine.fault import CoreFault, FaultKind, Names, error_of_fault
from tilewright.errors import EngineError, InternalError, TimeLimitError
from tilewright.units import MAX_PS


def build(engine: Engine) -> None:
    """Routes: 0 west, 1 west and east, 2 a unit without a rate. Signal 0: go."""
    for name in ("west", "east"):
        engine.add_server(ServerSpec(name, bytes_per_us=64_000, latency_ps=2**61))
    engine.add_server(ServerSpec("unit"))
    for servers in (["west"], ["west", "east"], ["unit"]):
        engine.add_route(servers)
    engine.add_signal("go")


def graph_of(add: Callable[[TaskGraph], object]) -> TaskGraph:
    graph = TaskGraph()
    graph.timer()
    add(graph)
    return graph


WRONG_GRAPHS: dict[str, tuple[Callable[[TaskGraph], object], str]] = {
    "route": (
        lambda graph: graph.transfer(3, num_bytes=1),
        (
            "task graph, task 1: found route 3, expected a route of this engine; "
            "use what add_route returned"
        ),
    ),
    "long hold": (
        lambda graph: graph.hold(1, hold_ps=1),
        (
            "task graph, task 1: found a hold on route 1, expected a route of one server; "
            "add a route of its own"
        ),
    ),
    "no rate": (
        lambda graph: graph.transfer(2, num_bytes=1),
        (
            "task graph, task 1: found a transfer through server 'unit', which has no rate, "
            "expected a rate or a service; give it bytes_per_us or hold it instead"
        ),
    ),
    "signal": (
        lambda graph: graph.timer(waits=((1, 1),)),
        (
            "task graph, task 1: found signal 1, expected a signal of this engine; "
            "use what add_signal returned"
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG_GRAPHS)
def test_a_graph_that_names_what_is_not_there_is_refused(engine: Engine, case: str) -> None:
    build(engine)
    add, message = WRONG_GRAPHS[case]
    with pytest.raises(EngineError) as caught:
        engine.submit(graph_of(add))
    assert str(caught.value) == message
    engine.run()  # nothing has been submitted, and the engine goes on
    assert engine.now_ps == 0


WRONG_CALLS: dict[str, tuple[Callable[[Engine], object], str]] = {
    "no graph": (
        lambda engine: engine.submit(None),  # type: ignore[arg-type]
        "submit: found None, expected a TaskGraph; build one",
    ),
    "no bool for tracing": (
        lambda engine: engine.set_trace("x"),  # type: ignore[arg-type]
        "set_trace: found 'x', expected True or False; pass a bool",
    ),
    "no graph to watch": (
        lambda engine: engine.submit_watched(None),  # type: ignore[arg-type]
        "submit: found None, expected a TaskGraph; build one",
    ),
    "no graph to prepare": (
        lambda engine: engine.prepare(None),  # type: ignore[arg-type]
        "submit: found None, expected a TaskGraph; build one",
    ),
    "after a number": (
        lambda engine: engine.submit(TaskGraph(), after=3),  # type: ignore[arg-type]
        "submit: found after = 3, expected a sequence of ids; put it in a tuple",
    ),
    "owner": (
        lambda engine: engine.submit(TaskGraph(), owner=2**22 + 1),
        "submit: found owner = 4194305, expected an int in 0..4194304; correct owner",
    ),
    "after a text": (
        lambda engine: engine.submit(TaskGraph(), after=("x",)),  # type: ignore[arg-type]
        (
            "submit: found after = 'x', expected an int in 0..9223372036854775807 "
            "(no bool, no NumPy scalar); correct after"
        ),
    ),
    "after the unknown": (
        lambda engine: engine.submit(TaskGraph(), after=((5 << 40) + 9,)),
        (
            "engine: found the task id 5:9, expected a task that has been submitted; "
            "pass an id that submit or task_id returned"
        ),
    ),
    "watch": (
        lambda engine: engine.watch(7),
        (
            "engine: found the task id 0:7, expected a task that has been submitted; "
            "pass an id that submit or task_id returned"
        ),
    ),
    "watch beyond int64": (
        lambda engine: engine.watch(2**63),
        (
            "watch: found task_id = 9223372036854775808, "
            "expected an int in 0..9223372036854775807; correct task_id"
        ),
    ),
    "signal": (
        lambda engine: engine.raise_signal(1),
        "engine: found signal 1, expected a signal of this engine; use what add_signal returned",
    ),
    "signal value": (
        lambda engine: engine.signal_value(-1),
        "engine: found signal -1, expected a signal of this engine; use what add_signal returned",
    ),
    "amount": (
        lambda engine: engine.raise_signal(0, 0),
        "raise_signal: found amount = 0, expected an int in 1..9223372036854775807; correct amount",
    ),
    "until": (
        lambda engine: engine.advance(-1),
        "advance: found until_ps = -1, expected an int in 0..4611686018427387903; correct until_ps",
    ),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_call_is_refused_in_the_same_words(engine: Engine, case: str) -> None:
    build(engine)
    attempt, message = WRONG_CALLS[case]
    with pytest.raises(EngineError) as caught:
        attempt(engine)
    assert str(caught.value) == message
    engine.run()


def test_a_signal_beyond_int64_is_refused(engine: Engine) -> None:
    signal = engine.add_signal("go")
    engine.raise_signal(signal, MAX_PS)
    with pytest.raises(EngineError, match="signal 'go': found a raise by 1 beyond the limit"):
        engine.raise_signal(signal, 1)
    assert engine.signal_value(signal) == MAX_PS


def test_a_delay_beyond_the_last_time_names_the_task(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(5)
    engine.submit(graph)
    engine.run()
    late = TaskGraph()
    late.timer(MAX_PS)
    with pytest.raises(TimeLimitError) as caught:
        engine.submit(late, owner=3)
    assert str(caught.value) == (
        "engine: found a time of 2^62 ps or more for task 3:0 at 5 ps, "
        "expected at most 4611686018427387903 ps; use shorter times"
    )


def test_a_delay_beyond_the_last_time_after_another_task_names_the_task(engine: Engine) -> None:
    graph = TaskGraph()
    graph.timer(LAST_PS, after=(graph.timer(7),))
    engine.submit(graph)
    with pytest.raises(TimeLimitError, match=r"2\^62 ps or more for task 0:1 at 7 ps"):
        engine.run()


def test_a_hop_beyond_the_last_time_names_server_packet_and_time(engine: Engine) -> None:
    build(engine)
    graph = TaskGraph()
    graph.transfer(1, num_bytes=64)
    engine.submit(graph)
    with pytest.raises(TimeLimitError) as caught:
        engine.run()
    assert str(caught.value) == (
        "server 'east': found a time of 2^62 ps or more for packet 0:0 at 2305843009213694952 ps, "
        "expected at most 4611686018427387903 ps; use shorter times"
    )
    assert engine.now_ps == 2**61 + 1000


def test_a_hold_beyond_the_last_time_names_server_packet_and_time(engine: Engine) -> None:
    build(engine)
    graph = TaskGraph()
    graph.hold(2, hold_ps=MAX_PS, delay_ps=1)
    engine.submit(graph)
    with pytest.raises(TimeLimitError, match=r"server 'unit': .* for packet 0:0 at 1 ps"):
        engine.run()


@pytest.mark.parametrize("kind_of_fault", [FaultKind.ORDER, FaultKind.TIME_REVERSED])
def test_a_broken_order_is_a_bug_of_ours(kind_of_fault: FaultKind) -> None:
    error = error_of_fault(CoreFault(kind_of_fault, 0, 7, 99), Names(["west"], []), None)
    assert isinstance(error, InternalError)
    assert "99 ps" in str(error)


@pytest.mark.parametrize(
    "kind_of_fault", [kind for kind in FaultKind if kind is not FaultKind.BAD_ROW]
)
def test_every_fault_that_a_graph_does_not_explain_has_words(kind_of_fault: FaultKind) -> None:
    error = error_of_fault(CoreFault(kind_of_fault), Names(["west"], ["go"]), "west")
    assert "a known fault" not in str(error)
