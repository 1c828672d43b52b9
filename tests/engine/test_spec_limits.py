"""Limits of a run: what a user writes, and where a core stops."""

import pytest

from tests.kinds import every_engine
from tilewright.engine import EngineKind, Hub, TaskGraph, build_engine
from tilewright.engine.spec import Limits, limit_error, parse_limits
from tilewright.errors import EngineError, LimitError, RequestError, UsageError


def test_limits_are_changed_one_by_one() -> None:
    found = parse_limits(["commands=5", "time=2.5 us"])
    assert (found.commands, found.time_ps) == (5, 2_500_000)
    assert (found.events, found.programs) == (Limits().events, Limits().programs)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["commands"], "'commands'"),
        (["steps=3"], "'steps=3'"),
        (["commands=0"], "commands=0"),
        (["commands=many"], "commands=many"),
        (["events=99999999999999999999"], "events=99999999999999999999"),
        (["time=3"], "time=3"),
        (["events=3", "events=4"], "events twice"),
    ],
)
def test_a_limit_that_is_none_is_refused(texts: list[str], found: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_limits(texts)
    assert caught.value.found == found


def test_limits_of_a_program_are_whole_numbers_from_1_up() -> None:
    with pytest.raises(RequestError, match="events=0"):
        Limits(events=0)


@pytest.mark.parametrize(
    ("name", "field"), [("programs", "programs"), ("time", "time_ps"), ("events", "events")]
)
def test_the_error_says_how_to_raise_the_limit(name: str, field: str) -> None:
    fix = limit_error("here", "too much", name, 7).fix
    assert f"--limit {name}=" in fix
    assert f"RuntimeContext(limits=Limits({field}=" in fix


def _chain(count: int, step_ps: int) -> TaskGraph:
    graph = TaskGraph()
    last = graph.timer(step_ps)
    for _ in range(count - 1):
        last = graph.timer(step_ps, after=(last,))
    return graph


@every_engine
def test_a_run_ends_at_the_last_instant_that_it_may_reach(kind: EngineKind) -> None:
    engine = build_engine(kind)
    engine.core.set_limits(10**6, 95)
    hub = Hub(engine)
    hub.spawn(lambda: hub.perform(_chain(20, 10), "the chain at line 3"), name="slow")
    with pytest.raises(LimitError) as caught:
        hub.run()
    assert "work left at 95 ps" in caught.value.found
    assert "slow: the chain at line 3" in caught.value.found
    assert engine.now_ps == 95


@every_engine
def test_work_that_ends_in_time_is_not_stopped(kind: EngineKind) -> None:
    engine = build_engine(kind)
    engine.core.set_limits(10**6, 200)
    hub = Hub(engine)
    program = hub.spawn(lambda: hub.perform(_chain(20, 10)), name="quick")
    hub.run()
    assert program.is_done
    assert engine.now_ps == 200


@every_engine
def test_a_run_of_too_many_events_is_stopped(kind: EngineKind) -> None:
    engine = build_engine(kind)
    engine.core.set_limits(1000, 10**12)
    hub = Hub(engine)
    hub.spawn(lambda: hub.perform(_chain(5000, 10_000)), name="long")
    with pytest.raises(LimitError, match="more than 1000 events"):
        hub.run()
    assert engine.core.events <= 1002
    with pytest.raises(EngineError, match="stopped"):
        engine.advance()


@every_engine
def test_events_are_counted_over_all_runs(kind: EngineKind) -> None:
    engine = build_engine(kind)
    engine.core.set_limits(1000, 10**12)
    hub = Hub(engine)

    def program() -> None:
        for _ in range(10**4):
            hub.sleep(5000)

    hub.spawn(program, name="sleeper")
    with pytest.raises(LimitError, match="more than 1000 events"):
        hub.run()
