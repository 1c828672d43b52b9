"""What a hub says: refusals, its deadlocks and its short form."""

from collections.abc import Callable

import pytest

from tilewright.engine import Engine, Hub
from tilewright.errors import DeadlockError, EngineError


def test_a_hub_needs_an_engine() -> None:
    with pytest.raises(EngineError, match=r"^hub: found None, expected an Engine; pass what"):
        Hub(None)  # type: ignore[arg-type]


def test_what_is_no_function_fails_where_it_is_spawned(engine: Engine) -> None:
    hub = Hub(engine)
    with pytest.raises(EngineError, match=r"^hub\.spawn: found None, expected a function; pass"):
        hub.spawn(None)  # type: ignore[arg-type]
    hub.run()
    assert repr(hub) == "<Hub at 0 ps, 0 of 0 programs not done>"


@pytest.mark.parametrize("call", ["submit", "perform"])
def test_a_program_submits_graphs_alone(engine: Engine, call: str) -> None:
    hub = Hub(engine)
    attempt: Callable[[None], object] = getattr(hub, call)
    hub.spawn(lambda: attempt(None))
    with pytest.raises(EngineError, match="found None, expected a TaskGraph; "):
        hub.run()


def test_a_program_that_waits_for_a_signal_names_it(engine: Engine) -> None:
    hub = Hub(engine)
    signal = engine.add_signal("go")
    hub.spawn(hub.wait_signal, signal, 2, name="a")
    with pytest.raises(DeadlockError) as caught:
        hub.run()
    assert caught.value.waiters[0] == "program 'a' waits for task 0:0 (signal 'go', 0 of 2)"
    lines = str(caught.value).split("\n")
    assert lines[-1].startswith("so nothing can go on, expected all work to end; ")


def test_a_hub_that_ended_repeats_one_line_of_the_first_error(engine: Engine) -> None:
    hub = Hub(engine)
    hub.spawn(hub.wait_signal, engine.add_signal("go"), 1)
    with pytest.raises(DeadlockError) as first:
        hub.run()
    with pytest.raises(EngineError) as second:
        hub.run()
    line = str(first.value).split("\n")[0]
    assert str(second.value) == (
        f"hub: found one whose run ended with DeadlockError: {line}, "
        "expected one that can go on; build a new engine and hub"
    )


def test_hubs_and_programs_have_a_short_form(engine: Engine) -> None:
    hub = Hub(engine)
    program = hub.spawn(hub.sleep, 5, name="sleeper")
    assert repr(program) == "<Program 0 'sleeper', not done>"
    assert repr(hub) == "<Hub at 0 ps, 1 of 1 programs not done>"
    hub.run()
    assert repr(program) == "<Program 0 'sleeper', done>"
    assert repr(hub) == "<Hub at 5 ps, 0 of 1 programs not done>"
