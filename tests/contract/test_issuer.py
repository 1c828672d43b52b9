"""Commands of a processor: equal on both engines, and never against the rules of their issue."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.issuer_ledger import ledger_of, steps_of
from tests.issuer_programs import (
    BACK,
    FAST,
    ISSUE,
    LAST_WALK,
    READ,
    SLOW,
    THERE,
    WALKS,
    WRITE,
    Command,
    CommandProgram,
    Compute,
    Finish,
    Load,
    Outcome,
    Release,
    Store,
    command_program,
    machine_of,
    run_commands,
)
from tests.kinds import every_engine, needs_both_engines
from tests.strategies import Seeded, choices
from tilewright.engine import EngineKind, ServerSpec, TaskGraph, build_engine
from tilewright.engine.core import NO_WALK
from tilewright.engine.issuer import IssuerSpec
from tilewright.engine.spec import MAX_SALT
from tilewright.errors import EngineError

programs = choices.map(command_program)
assert settings.default is not None
many = settings(max_examples=3 * settings.default.max_examples)


@needs_both_engines
@many
@given(programs)
def test_both_engines_show_the_same_of_every_program(program: CommandProgram) -> None:
    assert run_commands(program, EngineKind.NATIVE) == run_commands(program, EngineKind.REFERENCE)


@every_engine
@given(program=programs, salt=st.integers(1, MAX_SALT))
def test_the_order_inside_phase_0_changes_nothing(
    kind: EngineKind, program: CommandProgram, salt: int
) -> None:
    assert run_commands(program, kind, salt=salt) == run_commands(program, kind)


@every_engine
@many
@given(program=programs)
def test_where_a_program_is_cut_into_pieces_changes_nothing(
    kind: EngineKind, program: CommandProgram
) -> None:
    """But for ids: stand-ins for tasks of earlier pieces have some, too."""

    def shown(outcome: Outcome) -> object:
        times = [
            [(record.server, *record[2:]) for record in records] for _, records in outcome.records()
        ]
        counters = [counter[:-1] for counter in outcome.counters]
        return outcome.given, outcome.released, counters, times, outcome.effects

    whole = run_commands(program.without_cuts(), kind)
    assert shown(run_commands(program, kind)) == shown(whole)


@every_engine
@many
@given(program=programs)
def test_commands_are_issued_in_order_and_no_more_than_a_window_is_under_way(
    kind: EngineKind, program: CommandProgram
) -> None:
    outcome = run_commands(program, kind)
    steps = steps_of(outcome)
    window = program.spec.window
    for number, step in enumerate(steps):
        assert step.issue.tail_ps - step.issue.start_ps == program.spec.issue_ps
        for before in steps[:number]:
            assert step.issue.start_ps >= before.issued_ps
            if before.given.program < step.given.program:
                assert step.issue.start_ps >= before.ended_ps
        if number >= window and step.given.program == steps[number - window].given.program:
            assert step.issue.start_ps >= steps[number - window].ended_ps
    assert [count[0] for count in outcome.counters] == list(range(1, len(steps) + 1))


@every_engine
@many
@given(program=programs)
def test_work_waits_for_its_operands_and_no_space_is_ever_taken_twice(
    kind: EngineKind, program: CommandProgram
) -> None:
    outcome = run_commands(program, kind)
    ledger = ledger_of(program, outcome)
    assert ledger.most("near") <= program.spec.near_bytes
    assert ledger.most("far") <= program.spec.far_bytes
    if outcome.counters and not outcome.is_full:
        assert outcome.counters[-1][1] == ledger.spilled


def test_random_programs_do_all_that_can_be_done() -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        program = command_program(Seeded(seed))
        outcome = run_commands(program, EngineKind.REFERENCE)
        ledger = ledger_of(program, outcome)
        seen.update({name for name, count in ledger.seen.items() if count})
        seen["near again"] += ledger.total("near") > program.spec.near_bytes
        seen["far again"] += ledger.total("far") > program.spec.far_bytes
        seen["to its end"] += not outcome.is_full
        seen["long"] += len(outcome.given) > 10
    least = {"spill": 60, "partly near": 20, "staged": 40, "no room": 40, "near again": 60}
    least |= {"far again": 20, "to its end": 60, "long": 60, "walk": 40, "under a walk": 20}
    assert all(seen[name] >= count for name, count in least.items()), seen


SPEC = IssuerSpec(
    issue_route=ISSUE,
    issue_ps=2,
    dispatch_ps=5,
    window=4,
    read_route=READ,
    read_bytes_per_us=10**6,
    write_route=WRITE,
    write_bytes_per_us=10**6,
    near_bytes=24,
    far_bytes=200,
)
LOAD = Load(16, ((0, 1, 16, 0, 0, 0),))
QUICK = (FAST, 3, FAST, 0, 8)
LONG = (SLOW, 900, FAST, 0, 8)


def walking(walk: int) -> Load:
    return Load(16, ((0, 1, 16, 0, 0, walk),))


def program_of(*commands: Command, near_bytes: int = 24, **fields: int) -> CommandProgram:
    spec = replace(SPEC, near_bytes=near_bytes, **fields)
    return CommandProgram(spec, gate=4, plans=(QUICK, LONG), commands=commands)


@every_engine
def test_a_load_a_computation_and_a_store_take_the_times_of_their_parts(kind: EngineKind) -> None:
    store = Store(1, 8, ((1, 1, 8, 0, 0, 0),))
    outcome = run_commands(program_of(LOAD, Compute(0, (0,)), store), kind)
    times = [(record.server, record.start_ps, record.tail_ps) for record in outcome.trace]
    assert sorted(times) == [
        *((ISSUE, 0, 2), (ISSUE, 3, 5), (ISSUE, 6, 8)),
        (FAST, 50, 53),
        (READ, 27, 43),  # issued at 6, there at 22, five for the dispatch, a byte a picosecond
        (WRITE, 58, 66),  # to the far space, since the result was made near
        *((THERE, 8, 10), (THERE, 71, 73)),
        *((BACK, 13, 17), (BACK, 76, 78)),
    ]
    assert outcome.effects == [(13, 1), (76, 3)]
    assert outcome.statistics is not None
    assert outcome.statistics.now_ps == 83


def departures(kind: EngineKind, *commands: Command, **fields: int) -> list[int]:
    """When the first packets of accesses are ready to go, in the order of commands."""
    outcome = run_commands(program_of(*commands, **fields), kind)
    return [step.there[0].ready_ps for step in steps_of(outcome) if step.there]


@every_engine
def test_an_access_waits_for_the_walk_of_an_earlier_command_and_no_longer(kind: EngineKind) -> None:
    """Commands are issued 3 ps after each other; a walk is 50 ps from there, the dispatch 5."""
    accesses = [walking(WALKS), walking(LAST_WALK), walking(NO_WALK), walking(WALKS)]
    assert departures(kind, *accesses, walk_ps=50, hit_ps=4) == [58, 58, 18, 67]


@every_engine
def test_a_walk_begins_with_the_issue_and_not_when_operands_are_there(kind: EngineKind) -> None:
    """So a load that is said later never waits for the operand of a store."""
    store = Store(0, 8, ((1, 1, 8, 0, 0, WALKS),))
    long_ps = 3 + 5 + 900 + 4
    told = (Compute(1, ()), store, walking(LAST_WALK))
    to_store, to_load = departures(kind, *told, walk_ps=50)
    assert to_load == 6 + 50 + 5
    assert to_store == long_ps + 5 + 8 + 5  # by way of the far space; the walk ended long before


@every_engine
def test_a_command_that_is_a_window_later_does_not_name_a_walk(kind: EngineKind) -> None:
    """The command that walked has ended by then, and so has its walk."""
    told: list[Command] = [walking(WALKS), *[Compute(0, ())] * 3, walking(LAST_WALK)]
    first, last = (step for step in steps_of(run_commands(program_of(*told, walk_ps=50), kind))
                   if step.there)  # fmt: skip
    assert last.issue.start_ps == first.ended_ps
    assert last.there[0].ready_ps == last.issued_ps + SPEC.dispatch_ps


@every_engine
def test_the_walk_of_a_command_can_be_asked_after(kind: EngineKind) -> None:
    engine, issuer = machine_of(program_of(walk_ps=50), kind, salt=0)
    issuer.load(16, [(0, 1, 16, 0, 0, 1)], [], 1)
    issuer.load(16, [(0, 1, 16, 0, 0, 1)], [], 2)
    issuer.load(16, [(0, 1, 16, 0, 0, 3)], [], 3)
    engine.submit_piece(issuer, owner=5)
    first, last = (issuer.task_id(issuer.walk_of(command)) for command in (1, 3))
    engine.advance(52)
    assert not engine.core.is_complete(first)
    engine.advance(54)
    assert engine.core.is_complete(first)
    assert not engine.core.is_complete(last)
    engine.run()
    assert engine.core.is_complete(last)


@every_engine
def test_a_command_behind_a_stall_is_issued_when_the_value_is_there(kind: EngineKind) -> None:
    engine, issuer = machine_of(program_of(), kind, salt=0)
    engine.set_trace(True)
    value = issuer.load(16, [(0, 1, 16, 0, 0, NO_WALK)], [], 1)
    issuer.compute(0, [])
    issuer.stall(issuer.task_of(value))
    issuer.compute(0, [])
    issuer.compute(0, [])
    engine.submit_piece(issuer, owner=5)
    engine.watch(issuer.task_id(issuer.task_of(value)))
    engine.next_wake()
    there_ps = engine.now_ps
    engine.run()
    first, second, third, fourth = (
        record.start_ps for record in engine.take_trace() if record.server == ISSUE
    )
    assert first < second < there_ps
    assert third == there_ps
    assert fourth == third + (second - first)  # the stall holds one command back, not all


@every_engine
def test_a_program_that_says_nothing_keeps_the_order_of_those_around_it(kind: EngineKind) -> None:
    outcome = run_commands(program_of(Compute(1, ()), Finish(), Finish(), Compute(0, ())), kind)
    first, second = steps_of(outcome)
    assert second.issue.start_ps == first.ended_ps


@every_engine
def test_space_of_a_value_that_is_brought_again_and_again_waits_for_all_its_uses(
    kind: EngineKind,
) -> None:
    """A long use, then as many short ones as the window lets by, then the bytes are taken."""
    use_long, use_quick = Compute(1, (0,)), Compute(0, (0,))
    commands = (LOAD, use_long, use_quick, use_quick, Release(0), Compute(0, ()))
    outcome = run_commands(program_of(*commands, near_bytes=8), kind)
    _, long, *_, last = steps_of(outcome)
    assert last.works[0].start_ps >= long.work_ps


@every_engine
@pytest.mark.parametrize(
    "commands",
    [
        (Load(201, ((0, 1, 8, 0, 0, 0),)),),
        (LOAD, Load(185, ((0, 1, 8, 0, 0, 0),))),
        (Load(200, ((0, 1, 8, 0, 0, 0),)), *[Compute(0, ())] * 4),
        (Load(200, ((0, 1, 8, 0, 0, 0),)), Store(None, 8, ((1, 1, 8, 0, 0, 0),))),
    ],
    ids=["a load", "a second load", "a result", "a constant"],
)
def test_what_does_not_fit_is_told_and_what_was_issued_before_runs(
    kind: EngineKind, commands: tuple[Command, ...]
) -> None:
    outcome = run_commands(program_of(*commands), kind)
    assert [given.has_room for given in outcome.given] == [True] * (len(commands) - 1) + [False]
    assert len(steps_of(outcome)) == len(commands)


@every_engine
def test_a_figure_that_cannot_be_is_refused_by_name(kind: EngineKind) -> None:
    engine = build_engine(kind)
    engine.add_route([engine.add_server(ServerSpec("unit"))])
    with pytest.raises(EngineError, match=r"found read_route = 3, expected an int in 0\.\.0"):
        engine.add_issuer(SPEC)
    routes = {"read_route": 0, "write_route": 0}
    with pytest.raises(EngineError, match=r"issuer: found window = 0, expected an int in 1\.\."):
        engine.add_issuer(replace(SPEC, window=0, **routes))


@every_engine
def test_tasks_of_an_issuer_can_be_watched_and_followed(kind: EngineKind) -> None:
    engine, issuer = machine_of(program_of(), kind, salt=0)
    value = issuer.compute(1, [])
    engine.submit_piece(issuer, owner=5)
    engine.submit_piece(issuer, owner=5)  # nothing new
    task_id = issuer.task_id(issuer.task_of(value))
    assert engine.watch(task_id)
    graph = TaskGraph()
    graph.timer(1, after=(graph.earlier(task_id),), effect=9)
    engine.submit(graph)
    assert engine.advance() == [task_id]
    engine.run()
    assert engine.take_effects() == [(3 + 5 + 900 + 4 + 1, 9)]
