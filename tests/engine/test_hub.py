import gc
import tracemalloc
from collections.abc import Callable

import greenlet
import pytest

from tilewright.engine import Engine, Hub, PacketView, ServerSpec, TaskGraph
from tilewright.errors import DeadlockError, EngineError, ServerError

LINK_RATE = 64_000  # one flit of 64 bytes takes 1000 ps


def timer(delay_ps: int, effect: int = -1) -> TaskGraph:
    graph = TaskGraph()
    graph.timer(delay_ps, effect=effect)
    return graph


def test_programs_start_in_order_and_wake_in_event_order(engine: Engine) -> None:
    hub = Hub(engine)
    log: list[tuple[str, int]] = []

    def program(name: str, first_ps: int, second_ps: int) -> None:
        log.append((name, hub.now_ps))
        for time_ps in (first_ps, second_ps):
            hub.sleep(time_ps)
            log.append((name, hub.now_ps))

    hub.spawn(program, "a", 30, 10)
    hub.spawn(program, "b", 10, 30)
    hub.run()
    assert log == [("a", 0), ("b", 0), ("b", 10), ("a", 30), ("a", 40), ("b", 40)]


def test_a_program_owns_what_it_submits(engine: Engine) -> None:
    hub = Hub(engine)
    graph = timer(5)

    def program() -> tuple[int, int]:
        ids = hub.submit(graph), hub.submit(graph)
        hub.wait(ids[1])
        hub.wait(ids[0])  # complete already: returns at once
        return ids

    programs = [hub.spawn(program) for _ in range(3)]
    hub.run()
    assert [p.number for p in programs] == [0, 1, 2]
    assert [p.result for p in programs] == [(n << 40, (n << 40) + 1) for n in range(3)]
    assert all(p.is_done for p in programs)
    assert engine.now_ps == 5


def test_all_who_wait_for_one_task_wake_in_the_order_of_their_waits(engine: Engine) -> None:
    hub = Hub(engine)
    task_id = engine.submit(timer(9), owner=9)
    log: list[int] = []

    def program(number: int) -> None:
        for _ in range(2):
            hub.wait(task_id)
            log.append(number)

    for number in range(5):
        hub.spawn(program, number)
    hub.run()
    assert log == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_those_who_waited_together_wait_apart_afterwards(engine: Engine) -> None:
    hub = Hub(engine)
    first_id, second_id = (engine.submit(timer(time_ps), owner=9) for time_ps in (9, 99))
    log: list[tuple[int, int]] = []

    def program(number: int) -> None:
        hub.wait(first_id)
        hub.sleep(10 * (3 - number))
        log.append((number, hub.now_ps))
        hub.wait(second_id)
        log.append((number, hub.now_ps))

    for number in range(3):
        hub.spawn(program, number)
    hub.run()
    assert log == [(2, 19), (1, 29), (0, 39), (2, 99), (1, 99), (0, 99)]


def test_effects_are_applied_before_a_program_resumes(engine: Engine) -> None:
    log: list[object] = []
    hub = Hub(engine, log.extend)

    def program() -> None:
        first_id = hub.submit(timer(5, effect=1))
        hub.wait(hub.submit(timer(7, effect=2), after=(first_id,)))
        log.append("resumed")

    hub.spawn(program)
    hub.run()
    assert log == [(5, 1), (12, 2), "resumed"]


def test_a_signal_wakes_who_waits_for_its_value(engine: Engine) -> None:
    hub = Hub(engine)
    signal = engine.add_signal("go")

    def waiter() -> int:
        hub.wait_signal(signal, 2)
        hub.wait_signal(signal, 1)
        return hub.now_ps

    def raiser() -> None:
        for _ in range(2):
            hub.sleep(10)
            engine.raise_signal(signal)

    waiting = hub.spawn(waiter)
    hub.spawn(raiser)
    hub.run()
    assert waiting.result == 20


def test_a_program_may_spawn_others_and_a_hub_run_again(engine: Engine) -> None:
    hub = Hub(engine)
    log: list[str] = []

    def child(name: str) -> None:
        log.append(f"{name} at {hub.now_ps}")
        hub.sleep(1)

    def parent() -> None:
        hub.spawn(child, "first")
        hub.sleep(5)
        hub.spawn(child, "second")
        hub.sleep(5)
        log.append("parent")

    hub.spawn(parent)
    hub.run()
    assert log == ["first at 0", "second at 5", "parent"]
    assert hub.spawn(child, "third").number == 3
    hub.run()
    assert log[-1] == "third at 10"
    assert hub.now_ps == 11


def test_a_run_until_a_program_ends_leaves_the_others_for_the_next(engine: Engine) -> None:
    hub = Hub(engine)
    ended: list[tuple[str, int]] = []

    def sleeper(name: str, time_ps: int) -> None:
        hub.sleep(time_ps)
        hub.sleep(time_ps)
        ended.append((name, hub.now_ps))

    hub.spawn(sleeper, "long", 50, name="long")
    short = hub.spawn(sleeper, "short", 10, name="short")
    hub.run(until=short)
    assert (ended, hub.now_ps) == ([("short", 20)], 20)
    greenlet.greenlet(hub.run).switch()  # whoever runs it next is where programs end
    assert ended == [("short", 20), ("long", 100)]


def test_a_wait_works_at_any_depth_and_inside_except_blocks(engine: Engine) -> None:
    hub = Hub(engine)

    def deep(depth: int) -> int:
        if depth:
            return deep(depth - 1) + 1
        try:
            return int("no number")
        except ValueError:
            hub.sleep(3)
        return 0

    programs = [hub.spawn(deep, 50 + number) for number in range(3)]
    hub.run()
    assert [program.result for program in programs] == [50, 51, 52]


def failing(hub: Hub) -> None:
    hub.sleep(5)
    raise LookupError("no such row")


def test_an_error_ends_the_run_with_its_own_traceback(engine: Engine) -> None:
    hub = Hub(engine)
    log: list[str] = []

    def other() -> None:
        try:
            hub.sleep(100)
        finally:
            log.append("cleaned up")

    started = hub.spawn(other)
    hub.spawn(failing, hub)
    with pytest.raises(LookupError, match="no such row") as caught:
        hub.run()
    assert caught.traceback[-1].name == "failing"
    assert log == ["cleaned up"]
    assert not started.is_done
    message = "hub: found one whose run ended with LookupError: no such row, expected"
    with pytest.raises(EngineError, match=message):
        hub.run()
    with pytest.raises(EngineError, match=message):
        hub.spawn(other)


def test_programs_that_were_never_started_go_quietly(engine: Engine) -> None:
    hub = Hub(engine)
    ran: list[int] = []

    def parent() -> None:
        hub.spawn(ran.append, 1)
        hub.sleep(0)

    def fail() -> None:
        hub.spawn(ran.append, 2)
        raise LookupError

    hub.spawn(parent)
    hub.spawn(fail)
    hub.spawn(ran.append, 3)
    with pytest.raises(LookupError):
        hub.run()
    assert ran == []


def test_an_error_in_a_clean_up_is_told_beside_the_first(engine: Engine) -> None:
    hub = Hub(engine)

    def untidy() -> None:
        try:
            hub.sleep(100)
        finally:
            hub.sleep(1)

    hub.spawn(untidy, name="untidy")
    hub.spawn(failing, hub)
    with pytest.raises(LookupError) as caught:
        hub.run()
    (note,) = caught.value.__notes__
    assert note.startswith(
        "while program 'untidy' ended: EngineError: hub.perform: found a call in"
    )


def test_an_interrupt_ends_all_programs(engine: Engine) -> None:
    hub = Hub(engine)

    def interrupted() -> None:
        hub.sleep(5)
        raise KeyboardInterrupt

    hub.spawn(hub.sleep, 100)
    hub.spawn(interrupted)
    with pytest.raises(KeyboardInterrupt):
        hub.run()


def test_programs_that_wait_for_each_other_are_a_deadlock(engine: Engine) -> None:
    hub = Hub(engine)
    signals = [engine.add_signal("ping"), engine.add_signal("pong")]

    def program(mine: int, other: int) -> None:
        graph = TaskGraph()
        graph.timer(waits=((mine, 1),), raises=((other, 1),))
        hub.wait(hub.submit(graph), "recv from west" if mine else "")

    hub.spawn(program, *signals, name="a")
    hub.spawn(program, *reversed(signals), name="b")
    with pytest.raises(DeadlockError) as caught:
        hub.run()
    assert caught.value.waiters == (
        "program 'a' waits for task 0:0 (signal 'ping', 0 of 1)",
        "program 'b' waits for task 1:0 (recv from west)",
        "task 0:0 waits for signal 'ping' (0 of 1); task 1:0 would raise it",
        "task 1:0 waits for signal 'pong' (0 of 1); task 0:0 would raise it",
    )
    assert caught.value.cycle == ("task 0:0", "task 1:0", "task 0:0")
    assert all(line in str(caught.value) for line in caught.value.waiters)


def test_only_programs_may_wait_and_submit(engine: Engine) -> None:
    hub = Hub(engine)
    attempts: dict[str, Callable[[], object]] = {
        "wait": lambda: hub.wait(engine.submit(timer(1))),
        "submit": lambda: hub.submit(timer(1)),
    }
    for name, attempt in attempts.items():
        with pytest.raises(EngineError) as caught:
            attempt()
        assert str(caught.value) == (
            f"hub.{name}: found a call outside of any program, expected a call from a program; "
            "spawn a program that does it"
        )


def test_a_greenlet_that_a_program_made_may_not_wait(engine: Engine) -> None:
    hub = Hub(engine)
    hub.spawn(lambda: greenlet.greenlet(hub.sleep).switch(5), name="a")
    with pytest.raises(EngineError, match="found a call on a greenlet that program 'a' made"):
        hub.run()


def test_a_run_inside_a_run_is_refused(engine: Engine) -> None:
    hub = Hub(engine)
    hub.spawn(hub.run)
    with pytest.raises(EngineError, match="hub: found a run inside a run, expected one run"):
        hub.run()


class Waiting:
    """A server in Python that tries to wait."""

    def __init__(self, wait: Callable[[], object]) -> None:
        self.wait = wait

    def service(self, packet: PacketView, now_ps: int) -> tuple[int, int]:  # noqa: ARG002
        self.wait()
        return 16_000, 0


def send_through(hub: Hub, engine: Engine, server: Waiting) -> None:
    """Run a program that sends through the server, and one that sleeps meanwhile."""
    engine.add_server(ServerSpec("python", bytes_per_us=LINK_RATE, service=server))
    graph = TaskGraph()
    graph.transfer(engine.add_route(["python"]), num_bytes=64, delay_ps=5)
    hub.spawn(hub.sleep, 100_000)
    hub.spawn(lambda: hub.wait(hub.submit(graph)))
    hub.run()


def test_a_server_in_python_may_not_wait(engine: Engine) -> None:
    hub = Hub(engine)
    with pytest.raises(ServerError, match=r"hub\.wait: found a call inside a Python server"):
        send_through(hub, engine, Waiting(lambda: hub.wait(0)))


@pytest.mark.parametrize("what", ["switch", "throw"])
def test_a_server_in_python_may_not_resume_or_end_a_program(engine: Engine, what: str) -> None:
    hub = Hub(engine)
    programs: list[greenlet.greenlet] = []

    def sleeper() -> None:
        programs.append(greenlet.getcurrent())
        hub.sleep(200_000)

    hub.spawn(sleeper)
    with pytest.raises(ServerError, match=r"server 'python': .* a greenlet switch inside a Python"):
        send_through(hub, engine, Waiting(lambda: getattr(programs[0], what)()))


def test_effects_may_not_wait(engine: Engine) -> None:
    hub = Hub(engine, lambda _effects: hub.sleep(1))
    hub.spawn(lambda: hub.wait(hub.submit(timer(5, effect=1))))
    with pytest.raises(EngineError, match="a call inside a Python server or an effect"):
        hub.run()


def test_a_program_that_takes_the_wake_ups_of_others_is_found_out(engine: Engine) -> None:
    hub = Hub(engine)
    hub.spawn(hub.sleep, 5, name="robbed")

    def robber() -> None:
        engine.advance()
        hub.sleep(1)

    hub.spawn(robber)
    with pytest.raises(EngineError, match="hub: found no wake-ups left for 'robbed', expected"):
        hub.run()


@pytest.mark.parametrize("time_ps", [-1, 1.5, True])
def test_a_sleep_takes_an_integer_time(engine: Engine, time_ps: float) -> None:
    hub = Hub(engine)
    hub.spawn(hub.sleep, time_ps)
    with pytest.raises(EngineError, match="sleep: found time_ps = "):
        hub.run()


def test_many_steps_of_many_programs_leave_nothing_behind(engine: Engine) -> None:
    hub = Hub(engine)
    graphs = [timer(10 + number) for number in range(64)]

    def program(number: int) -> None:
        for _ in range(100):
            hub.wait(hub.submit(graphs[number]))

    def run_all() -> None:
        for number in range(64):
            hub.spawn(program, number)
        hub.run()
        gc.collect()

    run_all()
    tracemalloc.start()
    try:
        run_all()
        before, _ = tracemalloc.get_traced_memory()
        run_all()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 64 * 100  # bytes: less than one a step


def test_two_hubs_never_run_on_one_engine_at_a_time(engine: Engine) -> None:
    outer, inner = Hub(engine), Hub(engine)

    def program() -> None:
        inner.spawn(inner.sleep, 5)
        inner.run()

    outer.spawn(program)
    with pytest.raises(EngineError, match="found a run of another hub, expected one running hub"):
        outer.run()


def test_an_observer_looks_while_time_passes(engine: Engine) -> None:
    hub = Hub(engine, lambda _: None)
    seen: list[int] = []
    hub.observe = lambda: seen.append(hub.now_ps)

    def program() -> None:
        hub.sleep(5)
        hub.sleep(7)

    hub.spawn(program)
    hub.run()
    assert seen == [5, 12]


def test_a_run_that_fails_ends_every_program_and_says_which_one_failed(engine: Engine) -> None:
    hub = Hub(engine, first_number=7)
    ended: list[str] = []

    def waits() -> None:
        try:
            hub.sleep(1000)
        finally:
            ended.append("waits")

    def fails() -> None:
        hub.sleep(10)
        raise LookupError("no such row")

    done = hub.spawn(lambda: 5, name="done")
    others = [hub.spawn(waits), hub.spawn(fails)]
    with pytest.raises(LookupError):
        hub.run()
    assert [done.number, *(each.number for each in others)] == [7, 8, 9]
    assert (hub.failed, hub.has_ended, hub.next_number) == (others[1], True, 10)
    assert (done.result, done.end_reason, ended) == (5, None, ["waits"])
    assert {each.end_reason for each in others} == {"LookupError: no such row"}
