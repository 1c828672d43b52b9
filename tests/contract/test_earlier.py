"""Tasks that stand for earlier ones, so that a graph may be handed over in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.engine import EngineKind, Hub, TaskGraph, build_engine
from tilewright.errors import DeadlockError, EngineError


@every_engine
@given(delay_ps=st.integers(0, 50), wait_ps=st.integers(0, 60), owner=st.integers(0, 3))
def test_it_ends_with_the_task_it_stands_for_or_at_once(
    kind: EngineKind, delay_ps: int, wait_ps: int, owner: int
) -> None:
    engine = build_engine(kind)
    first, second = TaskGraph(), TaskGraph()
    first.timer(delay_ps, effect=1)
    task_id = engine.submit(first, owner=2)
    engine.advance(wait_ps)
    second.timer(5, after=(second.earlier(task_id),), effect=2)
    engine.submit(second, owner=owner)
    engine.run()
    assert engine.take_effects() == [(delay_ps, 1), (max(delay_ps, wait_ps) + 5, 2)]


@every_engine
def test_only_what_comes_after_it_waits(kind: EngineKind) -> None:
    engine = build_engine(kind)
    slow = TaskGraph()
    slow.timer(100)
    task_id = engine.submit(slow)
    graph = TaskGraph()
    stand_in = graph.earlier(task_id)
    graph.timer(1, effect=1)
    graph.timer(1, after=(stand_in,), effect=2)
    engine.submit(graph)
    engine.run()
    assert engine.take_effects() == [(1, 1), (101, 2)]


@every_engine
def test_it_comes_after_what_the_submission_comes_after(kind: EngineKind) -> None:
    engine = build_engine(kind)
    ids = []
    for delay_ps in (10, 30):
        graph = TaskGraph()
        graph.timer(delay_ps)
        ids.append(engine.submit(graph))
    graph = TaskGraph()
    graph.timer(after=(graph.earlier(ids[0]),), effect=1)
    engine.submit(graph, after=[ids[1]])
    engine.run()
    assert engine.take_effects() == [(30, 1)]


@every_engine
def test_a_program_performs_what_continues_its_earlier_graphs(kind: EngineKind) -> None:
    engine = build_engine(kind)
    hub = Hub(engine)

    def program() -> int:
        first = TaskGraph()
        first.timer(40)
        task_id = engine.submit(first, owner=7)
        second = TaskGraph()
        second.timer(2, after=(second.earlier(task_id),))
        hub.perform(second, "the rest")
        return hub.now_ps

    reader = hub.spawn(program)
    hub.run()
    assert reader.result == 42


@every_engine
def test_an_id_that_nobody_has_is_refused_and_leaves_nothing_behind(kind: EngineKind) -> None:
    engine = build_engine(kind)
    graph = TaskGraph()
    graph.timer(3)
    graph.earlier((4 << 40) + 1)
    with pytest.raises(EngineError) as caught:
        engine.submit(graph, owner=4)  # its own tasks are not earlier ones
    assert str(caught.value) == (
        "engine: found the task id 4:1, expected a task that has been submitted; "
        "pass an id that submit or task_id returned"
    )
    engine.run()
    assert engine.now_ps == 0
    assert engine.submit(TaskGraph(), owner=4) == 4 << 40


@every_engine
def test_what_is_no_id_is_refused(kind: EngineKind) -> None:
    graph = TaskGraph()
    graph.earlier(-1)
    with pytest.raises(
        EngineError, match="task graph, task 0: found task_id = -1, expected an int"
    ):
        build_engine(kind).submit(graph)


@every_engine
def test_a_deadlock_names_the_task_that_it_stands_for(kind: EngineKind) -> None:
    engine = build_engine(kind)
    never = TaskGraph()
    never.timer(waits=((engine.add_signal("never"), 1),))
    graph = TaskGraph()
    graph.earlier(engine.submit(never))
    engine.submit(graph, owner=1)
    with pytest.raises(DeadlockError, match="task 1:0 waits for task 0:0"):
        engine.run()
