"""Owners that submit no more, and signals that are given up: the same on every engine."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds import ENGINES, every_engine, needs_both_engines
from tilewright.engine import Engine, EngineKind, ServerSpec, TaskGraph, TraceRecord, build_engine
from tilewright.errors import EngineError

OWNER = 2**40
PAGE_BYTES = 4096


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return build_engine(request.param)


def timer(delay_ps: int = 10, **fields: Any) -> TaskGraph:
    graph = TaskGraph()
    graph.timer(delay_ps, **fields)
    return graph


# -- owners --------------------------------------------------------------------------------------


def test_tasks_of_an_owner_that_has_ended_go_on(engine: Engine) -> None:
    task = engine.submit(timer(10, effect=7), owner=3)
    engine.end_owner(3)
    assert not engine.core.is_complete(task)
    assert engine.watch(task)
    assert engine.advance() == [task]
    assert engine.take_effects() == [(10, 7)]
    assert engine.core.is_complete(task)


def test_a_task_may_come_after_one_of_an_owner_that_has_ended(engine: Engine) -> None:
    first = engine.submit(timer(10), owner=3)
    engine.end_owner(3)
    engine.submit(timer(5, effect=1), owner=4, after=(first,))
    engine.run()
    engine.submit(timer(5, effect=2), owner=4, after=(first,))
    engine.run()
    assert engine.take_effects() == [(15, 1), (20, 2)]


def test_ids_of_an_owner_that_has_ended_count_as_complete(engine: Engine) -> None:
    engine.submit(timer(), owner=3)
    for task_id in (3 * OWNER + 1, 4 * OWNER):
        with pytest.raises(EngineError, match="a task that has been submitted"):
            engine.watch(task_id)
    engine.end_owner(3)
    engine.run()
    assert not engine.watch(3 * OWNER)
    assert not engine.watch(3 * OWNER + 1)


def test_an_owner_that_comes_back_gets_new_ids(engine: Engine) -> None:
    """Behind those of its 64 neighbours: of 0 to 63 the farthest is 2, which has taken 3."""
    before = {owner: [engine.submit(timer(), owner=owner)] for owner in (1, 2, 64)}
    before[2] += [engine.submit(timer(), owner=2) for _ in range(2)]
    for owner in range(64):
        engine.end_owner(owner)
    engine.end_owner(1)
    engine.run()
    assert engine.submit(timer(), owner=1) == OWNER + 3
    assert engine.submit(timer(), owner=1) == OWNER + 4
    assert engine.submit(timer(), owner=64) == 64 * OWNER + 1
    engine.run()
    assert all(engine.core.is_complete(each) for ids in before.values() for each in ids)


def test_an_owner_may_come_back_while_its_tasks_go_on(engine: Engine) -> None:
    first = engine.submit(timer(10), owner=3)
    engine.end_owner(3)
    second = engine.submit(timer(5), owner=3)
    assert second == first + 1
    assert engine.watch(first)
    assert engine.watch(second)
    assert [engine.advance(), engine.advance()] == [[second], [first]]


def test_an_owner_is_a_number(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"end_owner: found owner = -1, expected an int in 0"):
        engine.end_owner(-1)


Step = tuple[int, int, bool]  # owner, flits, and whether the owner then ends


def run_steps(kind: EngineKind, steps: list[Step], *, ends: bool) -> list[TraceRecord]:
    """Transfers over two links that all of them share, with time between some of them."""
    engine = build_engine(kind)
    engine.set_trace(True)
    links = [ServerSpec(name, bytes_per_us=64_000_000_000 // 3) for name in "ab"]
    route = engine.add_route([engine.add_server(link) for link in links])
    for number, (owner, flits, is_last) in enumerate(steps):
        graph = TaskGraph()
        graph.transfer(route, flits * 64)
        engine.submit(graph, owner=owner)
        if ends and is_last:
            engine.end_owner(owner)
        if number % 5 == 4:
            engine.advance(engine.now_ps + 20)
    engine.run()
    return engine.take_trace()


STEPS = st.lists(
    st.tuples(st.sampled_from([0, 1, 63, 64, 200]), st.integers(1, 40), st.booleans()), max_size=30
)


@needs_both_engines
@given(STEPS)
def test_the_ends_of_owners_change_no_time_and_are_the_same_everywhere(steps: list[Step]) -> None:
    reference = run_steps(EngineKind.REFERENCE, steps, ends=True)
    assert run_steps(EngineKind.NATIVE, steps, ends=True) == reference
    kept = run_steps(EngineKind.REFERENCE, steps, ends=False)
    times = [
        [(each.server, each.start_ps, each.tail_ps) for each in run] for run in (reference, kept)
    ]
    assert times[0] == times[1]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@every_engine
def test_nothing_is_kept_of_owners_that_have_ended(kind: EngineKind) -> None:
    """A byte each, and what a growing table has to spare; a record of each would have 48."""
    engine = build_engine(kind)
    graph = timer(1)

    def submit_all(first: int) -> int:
        for owner in range(first, first + num_owners):
            engine.submit(graph, owner=owner)
            engine.end_owner(owner)
            if owner % 100 == 0:
                engine.run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if is_traced else resident_bytes()

    is_traced = kind is EngineKind.REFERENCE  # the memory of compiled code is not
    num_owners = 4_000 if is_traced else 200_000
    if is_traced:
        tracemalloc.start()
    try:
        submit_all(0)
        before, after = submit_all(num_owners), submit_all(2 * num_owners)
    finally:
        tracemalloc.stop()
    assert after - before < 8 * num_owners


# -- signals -------------------------------------------------------------------------------------


def test_the_number_and_the_name_of_a_removed_signal_are_free(engine: Engine) -> None:
    first, other = engine.add_signal("first"), engine.add_signal("other")
    engine.raise_signal(first, 5)
    engine.remove_signal(first)
    second = engine.add_signal("first")
    assert second == first
    assert [engine.signal_value(each) for each in (second, other)] == [0, 0]


def test_a_later_signal_of_the_same_number_is_waited_for_anew(engine: Engine) -> None:
    signal = engine.add_signal("first")
    engine.submit(timer(10, waits=((signal, 1),), effect=1))
    engine.raise_signal(signal)
    engine.remove_signal(signal)  # who waited has started
    signal = engine.add_signal("second")
    engine.submit(timer(10, waits=((signal, 1),), effect=2))
    engine.submit(timer(30, raises=((signal, 1),)))
    engine.run()
    assert engine.take_effects() == [(10, 1), (40, 2)]


def test_a_signal_that_a_task_waits_for_is_not_removed(engine: Engine) -> None:
    signal = engine.add_signal("go")
    engine.submit(timer(waits=((signal, 1),)))
    with pytest.raises(EngineError, match=r"signal 'go': found a removal, expected no task that"):
        engine.remove_signal(signal)
    engine.raise_signal(signal)
    engine.run()
    engine.remove_signal(signal)


@pytest.mark.parametrize("use", ["raise_signal", "signal_value", "remove_signal"])
def test_a_removed_signal_is_refused(engine: Engine, use: str) -> None:
    signal = engine.add_signal("gone")
    engine.remove_signal(signal)
    with pytest.raises(EngineError, match=r"engine: found signal 0, expected a signal of this"):
        getattr(engine, use)(signal)
