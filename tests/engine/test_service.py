import gc
import weakref
from collections.abc import Callable
from typing import Any

import greenlet
import numpy as np
import pytest

from tilewright.engine import Engine, EngineKind, PacketView, ServerSpec, TaskGraph, build_engine
from tilewright.errors import EngineError, ServerError
from tilewright.units import MAX_PS

LINK_RATE = 64_000  # one flit of 64 bytes takes 1000 ps


class Calling:
    """A server in Python that does what it is told."""

    def __init__(self, function: Callable[[PacketView, int], Any]) -> None:
        self.function = function

    def service(self, packet: PacketView, now_ps: int) -> Any:
        return self.function(packet, now_ps)


def serve(
    engine: Engine, function: Callable[[PacketView, int], Any], rate: int | None = LINK_RATE
) -> None:
    """Run 1100 bytes with tag 9 through a server in Python."""
    engine.add_server(ServerSpec("python", bytes_per_us=rate, service=Calling(function)))
    graph = TaskGraph()
    graph.transfer(engine.add_route(["python"]), num_bytes=1100, delay_ps=5, tag=9)
    engine.submit(graph, owner=2)
    engine.run()


def test_a_server_in_python_decides_time_per_packet(engine: Engine) -> None:
    seen = []

    def hold(packet: PacketView, now_ps: int) -> tuple[int, int]:
        seen.append((packet, now_ps))
        return 20_000, 300

    serve(engine, hold)
    first = 2 << 40
    assert seen == [
        (PacketView(first, first, 0, 16, 1024, 9), 5),
        (PacketView(first + 1, first, 1, 2, 76, 9, 1024), 20_005),
    ]
    assert engine.now_ps == 40_305


FIRST = "packet 2:0 (16 flits, 1024 bytes, tag 9) at 5 ps"
PAIR = (
    "expected (hold_ps, latency_ps), a tuple of two ints in 0..9223372036854775807 "
    "(no bool, no NumPy scalar)"
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (7, "7"),
        ((1, 2, 3), "(1, 2, 3)"),
        ([16_000, 0], "[16000, 0]"),
        ((16_000.0, 0), "(16000.0, 0)"),
        ((16_000, True), "(16000, True)"),
        ((np.int64(16_000), 0), f"({np.int64(16_000)!r}, 0)"),
        ((16_000, -1), "(16000, -1)"),
        ((MAX_PS + 1, 0), "(9223372036854775808, 0)"),
    ],
)
def test_nonsense_is_refused_with_server_packet_time_and_value(
    engine: Engine, value: object, shown: str
) -> None:
    with pytest.raises(ServerError) as caught:
        serve(engine, lambda _packet, _now_ps: value)
    fix = "pass int(value)" if "int64" in shown or "True" in shown else "correct its service method"
    assert (
        str(caught.value) == f"server 'python': found {shown} returned for {FIRST}, {PAIR}; {fix}"
    )


def test_a_server_with_a_rate_is_held_for_all_its_flits(engine: Engine) -> None:
    with pytest.raises(ServerError) as caught:
        serve(engine, lambda _packet, _now_ps: (15_999, 0))
    expected = "expected hold_ps >= 16000, the time of 16 flits of 1000 ps"
    assert f"found (15999, 0) returned for {FIRST}, {expected}" in str(caught.value)


def test_a_server_without_a_rate_takes_some_time(engine: Engine) -> None:
    with pytest.raises(ServerError, match=r"found \(0, 0\) .* hold_ps \+ latency_ps >= 1"):
        serve(engine, lambda _packet, _now_ps: (0, 0), rate=None)


def test_a_latency_alone_is_time_enough_without_a_rate(engine: Engine) -> None:
    serve(engine, lambda _packet, _now_ps: (0, 4), rate=None)
    assert engine.now_ps == 9


def test_an_exception_keeps_its_cause_and_names_the_server(engine: Engine) -> None:
    def fail(_packet: PacketView, _now_ps: int) -> tuple[int, int]:
        raise LookupError("no such row")

    with pytest.raises(ServerError) as caught:
        serve(engine, fail)
    found = f"found LookupError (no such row) raised for {FIRST}"
    assert str(caught.value) == f"server 'python': {found}, {PAIR}; correct its service method"
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_time_beyond_the_last_is_the_engines_error(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"server 'python': found a time of 2\^62 ps or more for"):
        serve(engine, lambda _packet, _now_ps: (MAX_PS, 0))


def reentering(engine: Engine) -> dict[str, Callable[[], object]]:
    graph = TaskGraph()
    graph.timer()
    return {
        "submit": lambda: engine.submit(graph),
        "advance": engine.advance,
        "run": engine.run,
        "raise_signal": lambda: engine.raise_signal(0),
        "add_server": lambda: engine.add_server(ServerSpec("late")),
        "add_route": lambda: engine.add_route(["python"]),
        "add_signal": lambda: engine.add_signal("late"),
        "take_effects": engine.take_effects,
        "take_trace": engine.take_trace,
        "take_trace_rows": engine.take_trace_rows,
        "statistics": engine.statistics,
    }


@pytest.mark.parametrize("call", reentering(build_engine(EngineKind.REFERENCE)))
def test_a_server_may_not_call_the_engine(engine: Engine, call: str) -> None:
    engine.add_signal("go")
    with pytest.raises(ServerError) as caught:
        serve(engine, lambda _packet, _now_ps: reentering(engine)[call]())
    cause = caught.value.__cause__
    assert isinstance(cause, EngineError)
    assert str(cause).startswith(
        "server 'python': found a call to the engine from inside a Python server, expected"
    )


def test_a_refused_call_that_the_server_handles_changes_nothing(engine: Engine) -> None:
    def careful(_packet: PacketView, _now_ps: int) -> tuple[int, int]:
        for attempt in reentering(engine).values():
            with pytest.raises(EngineError):
                attempt()
        return 16_000, 0

    engine.add_signal("go")
    serve(engine, careful)
    assert engine.now_ps == 32_005
    assert len(engine.statistics().servers) == 1


SWITCH = "server 'python': found a greenlet switch inside a Python server"


def test_a_switch_to_a_fresh_greenlet_is_refused(engine: Engine) -> None:
    ran: list[int] = []
    with pytest.raises(ServerError, match="a greenlet switch inside a Python server"):
        serve(engine, lambda _packet, _now_ps: greenlet.greenlet(ran.append).switch(1))
    assert ran == []


def test_a_switch_to_a_suspended_greenlet_is_refused(engine: Engine) -> None:
    def other() -> None:
        home.switch()

    home = greenlet.getcurrent()
    suspended = greenlet.greenlet(other)
    suspended.switch()
    with pytest.raises(ServerError, match="a greenlet switch inside a Python server"):
        serve(engine, lambda _packet, _now_ps: suspended.switch())
    assert greenlet.gettrace() is None


def test_a_switch_that_comes_back_is_refused_all_the_same(engine: Engine) -> None:
    def stubborn() -> None:
        try:
            home.switch()
        except EngineError:
            home.switch((16_000, 0))  # as if nothing had happened

    home = greenlet.getcurrent()
    suspended = greenlet.greenlet(stubborn)
    suspended.switch()
    with pytest.raises(ServerError, match="a greenlet switch inside a Python server"):
        serve(engine, lambda _packet, _now_ps: suspended.switch())


def parent() -> greenlet.greenlet:
    found = greenlet.getcurrent().parent
    assert found is not None
    return found


def test_a_switch_to_the_parent_ends_there_and_stops_the_engine(engine: Engine) -> None:
    runner = greenlet.greenlet(serve)
    with pytest.raises(EngineError) as caught:
        runner.switch(engine, lambda _packet, _now_ps: parent().switch())
    assert str(caught.value).startswith(SWITCH)
    with pytest.raises(
        EngineError, match="one that stopped at 5 ps: EngineError: server 'python': "
    ):
        engine.run()
    runner.throw()  # its frames unwind, the core's among them
    assert runner.dead
    assert greenlet.gettrace() is None
    assert engine.now_ps == 5


def test_a_throw_into_the_parent_is_refused(engine: Engine) -> None:
    runner = greenlet.greenlet(serve)
    with pytest.raises(EngineError) as caught:
        runner.switch(engine, lambda _packet, _now_ps: parent().throw())
    assert str(caught.value).startswith(SWITCH)
    runner.throw()


def test_a_greenlet_may_be_collected_while_a_server_runs(engine: Engine) -> None:
    home = greenlet.getcurrent()
    forgotten = [greenlet.greenlet(lambda: home.switch())]
    forgotten[0].switch()

    def forget(_packet: PacketView, _now_ps: int) -> tuple[int, int]:
        forgotten.clear()
        return 16_000, 0

    serve(engine, forget)
    assert engine.now_ps == 32_005


def test_a_tracer_of_the_user_is_back_after_a_run(engine: Engine) -> None:
    def tracer(event: str, args: object) -> None: ...

    greenlet.settrace(tracer)
    try:
        serve(engine, lambda _packet, _now_ps: (16_000, 0))
        assert greenlet.gettrace() is tracer
    finally:
        greenlet.settrace(None)


def test_a_server_in_python_goes_with_its_engine(kind: EngineKind) -> None:
    engine = build_engine(kind)
    server = Calling(lambda _packet, _now_ps: (16_000, 0))
    engine.add_server(ServerSpec("python", bytes_per_us=LINK_RATE, service=server))
    gone = weakref.ref(server)
    del engine, server
    gc.collect()
    assert gone() is None
