"""Composites of a processor: equal on both engines, one command in the window, space taken once."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.issuer_programs import FAST, ISSUE, READ, SLOW, THERE, WRITE, CommandProgram, machine_of
from tests.kinds import every_engine, needs_both_engines
from tests.strategies import Choices, Seeded, pick
from tilewright.engine import Engine, EngineKind, TraceRecord
from tilewright.engine.core import (
    FROM_START,
    HOLD,
    NO_EFFECT,
    NO_ROOM,
    NO_TASK,
    NO_VALUE,
    TIMER,
    TRANSFER,
    IssuedStep,
)
from tilewright.engine.issuer import Issuer, IssuerSpec

OWNER = 3
SPEC = IssuerSpec(
    issue_route=ISSUE,
    issue_ps=2,
    dispatch_ps=5,
    window=2,
    read_route=READ,
    read_bytes_per_us=10**6,
    write_route=WRITE,
    write_bytes_per_us=10**6,
    near_bytes=24,
    far_bytes=200,
)
QUICK, LONG, WIDE = (FAST, 3, FAST, 0, 8), (SLOW, 90, FAST, 0, 8), (FAST, 3, FAST, 0, 25)
PLANS = (QUICK, LONG, WIDE)
READS = [(0, 1, 16, 0, 0, 0)]
WRITES = [(1, 1, 8, 0, 0, 0)]


@dataclass
class Told:
    """What a caller was given back, whatever an issuer calls its values."""

    answers: list[object] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)  # values that updates have made
    is_open: bool = False
    is_full: bool = False


def random_steps(choices: Choices, signals: int) -> list[IssuedStep]:
    """Some wait for a signal that others raise, or nobody: then their command does not end."""
    steps: list[IssuedStep] = []
    for number in range(choices.integer(1, 4)):
        kind, target = pick(choices, [(HOLD, FAST), (TIMER, 0), (TRANSFER, THERE)])
        before = choices.integer(FROM_START, number - 1)
        waits = ((signals % 2, choices.integer(1, 3)),) if not choices.integer(0, 3) else ()
        raises = ((choices.integer(0, 1), choices.integer(1, 2)),)
        amount = choices.integer(1, 20)
        steps.append((kind, target, amount, 0, before, waits, raises, NO_EFFECT, number == 0))
    return steps


def tell(choices: Choices, engine: Engine, issuer: Issuer, told: Told, cuts: bool) -> None:
    """One random command."""
    kind = pick(
        choices,
        ["load", "load", "begin", *["update"] * 3, "compute", "park", "store", "release", "open",
         "close", "cut", "send", "send", "receive", "stall"],
    )  # fmt: skip
    place = choices.integer(0, 99)
    value = told.values[place % len(told.values)] if told.values else None
    made = None
    if kind == "load":
        made = issuer.load(16, READS, [], 1 + len(told.answers))
    elif kind == "compute":
        made = issuer.compute(0, [] if value is None else [value])
    elif kind == "begin":
        operands = [] if value is None else [(value, 5)]
        made = issuer.update(choices.integer(0, 2), NO_VALUE, operands)
        if made != NO_ROOM:
            told.sums.append(made)
    elif kind == "update" and told.sums and value is not None:
        target = told.sums[place % len(told.sums)]
        told.answers.append(issuer.update(1, target, [(value, 8)]) == target)
    elif kind == "store" and value is not None:
        told.is_full = issuer.store(value, 8, WRITES, [], 1 + len(told.answers)) == NO_ROOM
    elif kind == "park" and value is not None:
        told.sums = [number for number in told.sums if number != value]
        told.is_full = issuer.park(value) == NO_ROOM
    elif kind == "release" and value is not None:
        told.values.remove(value)
        told.sums = [number for number in told.sums if number != value]
        issuer.release(value)
    elif kind == "send":
        number = NO_VALUE if value is None else value
        told.is_full = issuer.send(number, 8, random_steps(choices, place)) == NO_ROOM
    elif kind == "receive":
        made = issuer.receive(8, random_steps(choices, place))
    elif kind == "open" and not told.is_open:
        issuer.open_composite()
        told.is_open = True
    elif kind == "close":
        told.answers.append(issuer.close_composite())
        told.is_open = False
    elif kind == "stall" and value is not None:
        issuer.stall(issuer.task_of(value))
    elif kind == "cut" and cuts:
        engine.submit_piece(issuer, owner=OWNER)
    if made is not None and made != NO_ROOM:
        told.values.append(made)
    told.is_full |= made == NO_ROOM and kind != "begin"
    told.answers += [made == NO_ROOM, issuer.num_commands, issuer.far_free_bytes]


Shown = tuple[list[object], list[TraceRecord], list[tuple[int, int]]]


def run(random: Choices, kind: EngineKind, *, cuts: bool = True) -> Shown:
    program = CommandProgram(SPEC, gate=4, plans=PLANS, commands=())
    engine, issuer = machine_of(program, kind, salt=0)
    engine.set_trace(True)
    for name in ("first", "second"):
        engine.add_signal(name)
    told = Told()
    for _ in range(40):
        if not told.is_full:
            tell(random, engine, issuer, told, cuts)
    engine.submit_piece(issuer, owner=OWNER)
    for signal in range(2):
        engine.raise_signal(signal, 3)  # so that all can end
    engine.run()
    return told.answers, engine.take_trace(), engine.take_effects()


def times(records: list[TraceRecord], server: int) -> list[tuple[int, int]]:
    return sorted(
        (record.start_ps, record.tail_ps) for record in records if record.server == server
    )


def started(kind: EngineKind, **fields: int) -> tuple[Engine, Issuer]:
    spec = replace(SPEC, **fields)
    engine, issuer = machine_of(
        CommandProgram(spec, gate=4, plans=PLANS, commands=()), kind, salt=0
    )
    engine.set_trace(True)
    return engine, issuer


def traced(engine: Engine, issuer: Issuer) -> list[TraceRecord]:
    engine.submit_piece(issuer, owner=OWNER)
    engine.run()
    return engine.take_trace()


seeds = st.integers(0, 2**32)
many = settings(max_examples=150)


@needs_both_engines
@many
@given(seeds)
def test_both_engines_show_the_same_of_every_composite(seed: int) -> None:
    assert run(Seeded(seed), EngineKind.NATIVE) == run(Seeded(seed), EngineKind.REFERENCE)


@every_engine
@given(seed=seeds)
def test_where_a_composite_is_cut_into_pieces_changes_no_time(kind: EngineKind, seed: int) -> None:
    def shown(outcome: Shown) -> object:
        return sorted((record.server, *record[2:]) for record in outcome[1]), outcome[2]

    assert shown(run(Seeded(seed), kind)) == shown(run(Seeded(seed), kind, cuts=False))


def test_random_composites_do_all_that_can_be_done() -> None:
    seen: Counter[int | str] = Counter()
    for seed in range(50):
        answers, trace, _ = run(Seeded(seed), EngineKind.REFERENCE)
        seen.update({record.server for record in trace})
        seen["full"] += True in answers
    assert min(seen[server] for server in (ISSUE, FAST, SLOW, READ, WRITE, THERE)) >= 20
    assert seen["full"] >= 10


@every_engine
def test_the_parts_of_a_composite_are_issued_once_and_enter_no_window(kind: EngineKind) -> None:
    engine, issuer = started(kind)
    issuer.open_composite()
    for _ in range(3):  # more than the window
        issuer.load(16, READS, [], 1)
    last = issuer.close_composite()
    issuer.compute(0, [])
    trace = traced(engine, issuer)
    assert times(trace, ISSUE) == [(0, 2), (3, 5)]
    assert issuer.num_commands == 2
    reads = times(trace, THERE)
    assert [start for start, _ in reads] == [reads[0][0] + 2 * place for place in range(3)]
    assert last != NO_TASK
    assert issuer.close_composite() == NO_TASK


@every_engine
def test_a_composite_is_one_command_of_the_window_until_its_last_part_ends(
    kind: EngineKind,
) -> None:
    engine, issuer = started(kind)
    issuer.open_composite()
    for _ in range(3):
        issuer.update(1, NO_VALUE, [])
    issuer.close_composite()
    issuer.compute(0, [])
    issuer.compute(0, [])  # the window is two
    trace = traced(engine, issuer)
    ends = [tail for _, tail in times(trace, SLOW)]
    starts = [start for start, _ in times(trace, ISSUE)]
    assert starts[1] == 3
    assert starts[2] >= ends[-1] > ends[0] + 100


@every_engine
def test_updates_of_one_value_follow_each_other_and_bring_no_operand_near(
    kind: EngineKind,
) -> None:
    engine, issuer = started(kind, near_bytes=8)
    loaded = issuer.load(16, READS, [], 1)
    total = issuer.update(1, NO_VALUE, [(loaded, 8)])
    assert issuer.update(0, total, [(loaded, 8)]) == total  # another unit
    trace = traced(engine, issuer)
    (first,), (second,) = times(trace, SLOW), times(trace, FAST)
    assert second[0] >= first[1]
    assert [tail - start for start, tail in times(trace, READ)] == [8, 8]  # half of it each time


@every_engine
def test_a_value_that_does_not_fit_the_near_space_is_refused(kind: EngineKind) -> None:
    _, issuer = started(kind)
    assert issuer.update(2, NO_VALUE, []) == NO_ROOM
    first = issuer.update(1, NO_VALUE, [])
    assert first != NO_ROOM


@every_engine
def test_space_of_a_value_waits_for_every_part_of_a_composite_that_uses_it(
    kind: EngineKind,
) -> None:
    """Short uses after a long one, more than the window, and then its bytes are taken."""
    engine, issuer = started(kind, far_bytes=16)
    loaded = issuer.load(16, READS, [], 1)
    issuer.open_composite()
    slow = issuer.update(1, NO_VALUE, [(loaded, 1)])
    for _ in range(4):
        issuer.release(issuer.update(0, NO_VALUE, [(loaded, 1)]))
    issuer.close_composite()
    issuer.release(loaded)
    issuer.load(16, READS, [], 2)
    trace = traced(engine, issuer)
    assert slow != NO_ROOM
    assert times(trace, THERE)[1][0] >= times(trace, SLOW)[0][1]


@every_engine
def test_a_parked_value_leaves_its_near_space_to_others(kind: EngineKind) -> None:
    engine, issuer = started(kind, near_bytes=8)
    value = issuer.update(1, NO_VALUE, [])
    assert issuer.update(1, NO_VALUE, []) == NO_ROOM
    assert issuer.park(value) != NO_ROOM
    issuer.update(1, NO_VALUE, [(value, 8)])
    trace = traced(engine, issuer)
    (write,) = times(trace, WRITE)
    (read,) = times(trace, READ)
    first, second = times(trace, SLOW)
    assert first[1] < write[0] < write[1] < read[0] < read[1] < second[0]


@every_engine
def test_steps_of_a_message_wait_for_signals_and_raise_them(kind: EngineKind) -> None:
    engine, issuer = started(kind)
    room, arrived = engine.add_signal("room"), engine.add_signal("arrived")
    steps: list[IssuedStep] = [
        (HOLD, FAST, 7, 0, FROM_START, ((room, 1),), (), NO_EFFECT, True),
        (HOLD, SLOW, 11, 0, 0, (), ((arrived, 2),), NO_EFFECT, False),
    ]
    task = issuer.send(NO_VALUE, 8, steps)
    value = issuer.receive(16, [(TIMER, 0, 0, 0, FROM_START, ((arrived, 2),), (), NO_EFFECT, True)])
    engine.submit_piece(issuer, owner=OWNER)
    assert engine.watch(issuer.task_id(task))
    assert engine.watch(issuer.task_id(issuer.task_of(value)))
    engine.advance(1000)
    assert times(engine.take_trace(), FAST) == []
    engine.raise_signal(room)
    sent, received = engine.advance(), engine.advance()
    assert sent == [issuer.task_id(task)]
    assert received == [issuer.task_id(issuer.task_of(value))]
    trace = engine.take_trace()
    (fast,), (slow,) = times(trace, FAST), times(trace, SLOW)
    assert fast == (1005, 1012)  # five for the dispatch
    assert slow == (1012, 1023)
    assert engine.signal_value(arrived) == 2
    assert issuer.far_free_bytes == SPEC.far_bytes - 16


@every_engine
def test_a_message_is_staged_far_and_its_space_is_free_when_it_has_gone(kind: EngineKind) -> None:
    engine, issuer = started(kind, far_bytes=16)
    step: IssuedStep = (HOLD, FAST, 50, 0, FROM_START, (), (), NO_EFFECT, True)
    issuer.send(issuer.compute(0, []), 16, [step])
    issuer.load(16, READS, [], 1)
    assert issuer.receive(1, [step]) == NO_ROOM
    trace = traced(engine, issuer)
    (write,) = times(trace, WRITE)
    sending = times(trace, FAST)[1]
    assert write[1] - write[0] == 16
    assert sending[0] >= write[1]
    assert times(trace, THERE)[0][0] >= sending[1]


@every_engine
def test_space_that_a_composite_gives_back_itself_waits_for_all_its_parts(
    kind: EngineKind,
) -> None:
    engine, issuer = started(kind, far_bytes=16)
    issuer.open_composite()
    loaded = issuer.load(16, READS, [], 1)
    issuer.update(1, NO_VALUE, [(loaded, 1)])
    for _ in range(4):
        issuer.release(issuer.update(0, NO_VALUE, [(loaded, 1)]))
    issuer.release(loaded)
    issuer.load(16, READS, [], 2)
    issuer.close_composite()
    trace = traced(engine, issuer)
    assert times(trace, THERE)[1][0] >= times(trace, SLOW)[0][1]


@every_engine
def test_an_update_comes_after_all_that_read_the_value_before(kind: EngineKind) -> None:
    engine, issuer = started(kind)
    total = issuer.update(0, NO_VALUE, [])
    issuer.compute(1, [total])  # takes long to read it
    issuer.update(0, total, [])
    trace = traced(engine, issuer)
    assert times(trace, FAST)[1][0] >= times(trace, SLOW)[0][1]
