"""Random programs on both engines: whatever a caller can see is the same, and obeys the rules."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine_programs import (
    FLIT_BYTES,
    Advance,
    GraphPlan,
    Outcome,
    Program,
    ServerPlan,
    Submit,
    TaskPlan,
    run_program,
)
from tests.kinds import every_engine, needs_both_engines
from tests.strategies import (
    Choices,
    Seeded,
    choices,
    drawn_programs,
    exchange_programs,
    random_program,
    seeded_programs,
)
from tests.trace_rules import check_times, check_turns, check_work, least_makespan_ps, visits_of
from tests.whole_programs import whole_programs
from tilewright.engine import EngineKind, native_built
from tilewright.engine.spec import MAX_SALT

pytestmark = pytest.mark.timeout(600)  # `make test-all` runs many more examples
assert settings.default is not None
many = settings(max_examples=5 * settings.default.max_examples)


def check_pair(program: Program) -> None:
    expected = run_program(program, EngineKind.REFERENCE)
    assert run_program(program, EngineKind.NATIVE) == expected


@needs_both_engines
@many
@example(random_program(Seeded(819)))  # packets that are counted before they start together
@example(random_program(Seeded(23579)))  # and that never start behind one without a credit
@given(seeded_programs)
def test_both_engines_show_the_same_in_every_program(program: Program) -> None:
    check_pair(program)


@needs_both_engines
@many
@given(exchange_programs)
def test_both_engines_show_the_same_in_every_program_with_exchanges(program: Program) -> None:
    check_pair(program)


@needs_both_engines
@given(drawn_programs())
def test_both_engines_show_the_same_in_every_program_that_can_be_shrunk(program: Program) -> None:
    check_pair(program)


def features(program: Program, outcome: Outcome) -> set[str]:
    """What makes a run worth comparing."""
    servers = outcome.statistics.servers
    found = {
        "wait": any(server.wait_ps for server in servers),
        "long queue": any(server.max_queue > 2 for server in servers),
        "slow feeds fast": any(server.held_ps > server.busy_ps for server in servers),
        "deadlock": outcome.is_deadlock,
        "cycle": bool(outcome.cycle),
        "end": outcome.error is None,
        "server error": (outcome.error or "").startswith("ServerError"),
        "wake-up": any(step[0] == "advance" and len(step) > 2 for step in outcome.seen),
        "many grants": len(outcome.trace) > 20,
        "earlier": any(
            task.earlier is not None
            for step in program.submits[1:]
            for task in program.plan_of(step)
        ),
        "Python server": any(
            program.servers[record.server].service is not None for record in outcome.trace
        ),
    }
    free_ps: Counter[int] = Counter()
    ready: set[tuple[int, int]] = set()
    for record in outcome.trace:
        found["stall"] = found.get("stall", False) or (
            record.start_ps > max(record.ready_ps, free_ps[record.server])
        )
        found["tie"] = found.get("tie", False) or (record.server, record.ready_ps) in ready
        free_ps[record.server] = record.tail_ps
        ready.add((record.server, record.ready_ps))
    return {feature for feature, is_found in found.items() if is_found}


LEAST_PERCENT = {
    "wait": 60,
    "tie": 60,
    "long queue": 60,
    "many grants": 40,
    "Python server": 25,
    "earlier": 25,
    "stall": 25,
    "wake-up": 25,
    "slow feeds fast": 8,
    "deadlock": 5,
    "cycle": 5,
    "server error": 1,
    "end": 60,
}


def test_random_programs_are_crowded() -> None:
    kind = EngineKind.NATIVE if native_built() else EngineKind.REFERENCE
    num_programs = 500
    seen: Counter[str] = Counter()
    for seed in range(num_programs):
        program = random_program(Seeded(seed))
        seen.update(features(program, run_program(program, kind)))
    shares = {feature: 100 * seen[feature] / num_programs for feature in LEAST_PERCENT}
    assert all(shares[feature] >= least for feature, least in LEAST_PERCENT.items()), shares


def is_cut_short(outcome: Outcome) -> bool:
    """In the middle of an instant, so that its parts that have no order may be done or not."""
    return (outcome.error or "").startswith("TimeLimitError")


@every_engine
@given(program=seeded_programs | exchange_programs | whole_programs, salt=st.integers(1, MAX_SALT))
def test_the_order_inside_phase_0_changes_nothing(
    kind: EngineKind, program: Program, salt: int
) -> None:
    assert run_program(program, kind, salt=salt) == run_program(program, kind)


@every_engine
@given(program=seeded_programs)
def test_an_engine_with_nothing_left_shows_a_time_from_the_last_delivery_on(
    kind: EngineKind, program: Program
) -> None:
    outcome = run_program(program, kind)
    if outcome.error is not None and not outcome.is_deadlock:
        return
    ends_ps = [
        visit.record.tail_ps + program.servers[visit.server].latency_ps
        for visit in visits_of(program, outcome)
        if visit.is_last and program.servers[visit.server].service is None
    ]
    assert outcome.statistics.now_ps >= max(ends_ps, default=0)


def after_the_first_alone(plan: GraphPlan) -> GraphPlan:
    """Of earlier submissions only the first, which both orders have in common."""
    return tuple(
        task if task.earlier is None else replace(task, earlier=(0, task.earlier[1]))
        for task in plan
    )


def owners_in_two_orders(choices: Choices) -> tuple[Program, Program]:
    """The same submissions at one instant in two orders; an earlier one keeps servers busy."""
    program = random_program(choices, with_exchanges=bool(choices.integer(0, 1)))
    program = replace(program, graphs=tuple(map(after_the_first_alone, program.graphs)))
    last_graph = len(program.graphs) - 1
    before = (Submit(choices.integer(0, last_graph), owner=9), Advance(choices.integer(0, 20)))
    submits = [
        Submit(choices.integer(0, last_graph), owner) for owner in range(choices.integer(2, 4))
    ]
    shuffled = sorted(submits, key=lambda _: choices.integer(0, 99))
    first = replace(program, steps=(*before, *submits))
    return first, replace(program, steps=(*before, *shuffled))


@every_engine
@given(pair=choices.map(owners_in_two_orders))
def test_the_order_in_which_owners_submit_changes_nothing(
    kind: EngineKind, pair: tuple[Program, Program]
) -> None:
    one, other = (run_program(program, kind) for program in pair)
    if is_cut_short(one):
        assert is_cut_short(other)
        return
    assert other.trace == one.trace
    assert other.effects == one.effects
    assert other.statistics == one.statistics
    assert other.error == one.error


@every_engine
@given(program=seeded_programs)
def test_every_trace_obeys_the_law_of_time_the_order_and_work_conservation(
    kind: EngineKind, program: Program
) -> None:
    outcome = run_program(program, kind)
    visits = visits_of(program, outcome)
    check_times(visits)
    check_turns(visits)
    if outcome.error is None:
        check_work(visits)
        assert outcome.statistics.now_ps >= least_makespan_ps(program)
        for server in outcome.statistics.servers:
            assert outcome.statistics.now_ps >= server.free_ps >= server.held_ps >= server.busy_ps


def ends_on_one_path(flit_times_ps: list[int], delays_ps: list[int], kind: EngineKind) -> list[int]:
    """When equal transfers along all servers end, in their order."""
    servers = tuple(ServerPlan(flit_ps, latency_ps=1) for flit_ps in flit_times_ps)
    path = tuple((server, 0) for server in range(len(servers)))
    graph = tuple(
        TaskPlan(route=0, num_bytes=2 * FLIT_BYTES, delay_ps=delay_ps, effect=effect)
        for effect, delay_ps in enumerate(delays_ps)
    )
    outcome = run_program(Program(servers, (path,), (graph,), (Submit(0, owner=0),)), kind)
    return [end_ps for _, end_ps in sorted((effect, end_ps) for end_ps, effect in outcome.effects)]


paths = st.lists(st.integers(1, 6), min_size=1, max_size=4)
times_ps = st.lists(st.integers(0, 30), min_size=1, max_size=12)


@every_engine
@given(flit_times_ps=paths, delays_ps=times_ps, data=st.data())
def test_on_one_path_more_bandwidth_or_less_traffic_delays_nobody(
    kind: EngineKind, flit_times_ps: list[int], delays_ps: list[int], data: st.DataObject
) -> None:
    ends_ps = ends_on_one_path(flit_times_ps, delays_ps, kind)
    place = data.draw(st.integers(0, len(flit_times_ps) - 1))
    faster_ps = list(flit_times_ps)
    faster_ps[place] = data.draw(st.integers(1, flit_times_ps[place]))
    pairs = zip(ends_on_one_path(faster_ps, delays_ps, kind), ends_ps, strict=True)
    assert all(sooner_ps <= end_ps for sooner_ps, end_ps in pairs)
    left_out = data.draw(st.integers(0, len(delays_ps) - 1))
    fewer_ps, fewer_ends_ps = list(delays_ps), list(ends_ps)
    del fewer_ps[left_out], fewer_ends_ps[left_out]
    if fewer_ps:
        pairs = zip(ends_on_one_path(flit_times_ps, fewer_ps, kind), fewer_ends_ps, strict=True)
        assert all(sooner_ps <= end_ps for sooner_ps, end_ps in pairs)
