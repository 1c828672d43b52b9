"""Programs that nobody lets go on: what ends them, and that nothing of them stays."""

import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tilewright.engine import Engine, EngineKind, PacketView, ServerSpec, TaskGraph, build_engine
from tilewright.engine.engine import MAX_OWNER
from tilewright.engine.hub import Hub
from tilewright.errors import EngineError

MakeEngine = Callable[..., Engine]


def suspend(hub: Hub, log: list[str] | None = None, error: Exception | None = None) -> None:
    """Leave a program behind that waits; it notes its end, or raises an error then."""

    def forever() -> None:
        try:
            while True:
                hub.sleep(1000)
        finally:
            if log is not None:
                log.append("ended")
            if error is not None:
                raise error

    hub.spawn(forever, name="forever")
    hub.run(until=hub.spawn(lambda: hub.sleep(10)))


def test_a_program_that_waits_ends_where_it_waits(engine: Engine) -> None:
    hub, log = Hub(engine), list[str]()
    suspend(hub, log)
    assert log == []
    hub.close()
    assert log == ["ended"]
    hub.close()
    assert log == ["ended"]


def test_a_closed_hub_runs_no_more(engine: Engine) -> None:
    hub = Hub(engine)
    suspend(hub)
    hub.close()
    for use in (hub.run, lambda: hub.spawn(print)):
        with pytest.raises(EngineError, match=r"hub: found one that is closed, expected"):
            use()


def test_nothing_keeps_an_engine_whose_hub_is_closed(make_engine: MakeEngine) -> None:
    def abandon() -> "weakref.ref[Engine]":
        engine = make_engine()
        with Hub(engine) as hub:
            suspend(hub)
        return weakref.ref(engine)

    gone = [abandon() for _ in range(20)]
    gc.collect()
    assert [each() for each in gone] == [None] * 20


@pytest.mark.parametrize("ends_by", ["an error of a program", "an error of the block", "no start"])
def test_errors_keep_no_engine_either(make_engine: MakeEngine, ends_by: str) -> None:
    def fail(hub: Hub) -> None:
        hub.sleep(5)
        raise ValueError(ends_by)

    def abandon() -> "weakref.ref[Engine]":
        engine = make_engine()
        hub = Hub(engine)
        if ends_by == "no start":
            hub.spawn(suspend, hub)
            return weakref.ref(engine)
        suspend(hub)
        if ends_by == "an error of a program":
            hub.spawn(fail, hub)
            with pytest.raises(ValueError, match=ends_by):
                hub.run()
        else:
            with pytest.raises(ValueError, match=ends_by), hub:
                raise ValueError(ends_by)
        return weakref.ref(engine)

    gone = abandon()
    gc.collect()
    assert gone() is None


def test_an_error_of_a_clean_up_is_raised_when_all_have_ended(engine: Engine) -> None:
    hub, log = Hub(engine), list[str]()
    suspend(hub, error=ValueError("no clean end"))
    suspend(hub, log)
    with pytest.raises(ValueError, match="no clean end") as caught:
        hub.close()
    assert log == ["ended"]
    assert caught.value.__notes__ == ["while program 'forever' ended: ValueError: no clean end"]


def test_a_hub_is_not_closed_while_it_runs(engine: Engine) -> None:
    hub = Hub(engine)
    hub.spawn(hub.close)
    with pytest.raises(EngineError, match=r"hub\.close: found a call inside a run"):
        hub.run()


def test_a_hub_is_closed_by_its_own_thread(engine: Engine) -> None:
    hub, log, errors = Hub(engine), list[str](), list[Exception]()
    suspend(hub, log)

    def close() -> None:
        try:
            hub.close()
        except EngineError as error:
            errors.append(error)

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert [str(error) for error in errors] == [
        "hub.close: found another thread, expected the thread that has run the hub; close it there"
    ]
    assert log == []
    hub.close()
    assert log == ["ended"]


def test_a_hub_may_be_closed_while_a_python_server_of_another_engine_works(
    kind: EngineKind,
) -> None:
    """As the garbage collector may do it, which runs anywhere."""
    other, log = Hub(build_engine(kind)), list[str]()
    suspend(other, log)

    class Closing:
        def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:
            del packet, now_ps
            other.close()
            return 100, 0

    engine = build_engine(kind)
    route = engine.add_route([engine.add_server(ServerSpec("closing", service=Closing()))])
    graph = TaskGraph()
    graph.transfer(route, 64)
    engine.submit(graph)
    engine.run()
    assert (log, engine.now_ps) == (["ended"], 100)


def test_after_the_greatest_number_programs_are_numbered_from_0_on(engine: Engine) -> None:
    hub = Hub(engine, first_number=MAX_OWNER - 1)
    suspend(hub)  # the two greatest numbers, of which the first stays in use
    assert hub.next_number == MAX_OWNER + 1

    def numbered() -> int:
        hub.sleep(1)
        return hub.current.number

    programs = [hub.spawn(numbered) for _ in range(3)]
    for program in programs:
        hub.run(until=program)
    assert [program.result for program in programs] == [0, 1, 2]
    hub.close()


PROGRAM = """
    from tilewright.engine import EngineKind, build_engine
    from tilewright.engine.hub import Hub

    hub = Hub(build_engine(EngineKind({kind!r})))

    def forever():
        try:
            while True:
                hub.sleep(1000)
        finally:
            print("ended")

    hub.spawn(forever)
    hub.run(until=hub.spawn(lambda: hub.sleep(10)))
"""


def test_the_end_of_a_process_ends_programs_and_leaks_nothing(kind: EngineKind) -> None:
    text = textwrap.dedent(PROGRAM).format(kind=kind.value)
    command: list[Any] = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)
