"""Random programs of commands for an issuer, and what a run of one shows, command by command."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.strategies import Choices, pick, some
from tilewright.engine import (
    Engine,
    EngineKind,
    EngineSpec,
    ServerSpec,
    Statistics,
    TraceRecord,
    build_engine,
)
from tilewright.engine.core import NO_ROOM, NO_VALUE, NO_WALK, IssuedAccess
from tilewright.engine.issuer import Issuer, IssuerSpec

__all__ = (
    "BACK",
    "FAST",
    "ISSUE",
    "LAST_WALK",
    "LATENCIES_PS",
    "READ",
    "SLOW",
    "THERE",
    "WALKS",
    "WRITE",
    "Command",
    "CommandProgram",
    "Compute",
    "Cut",
    "Finish",
    "Given",
    "Load",
    "Outcome",
    "Plan",
    "Release",
    "Store",
    "command_program",
    "machine_of",
    "run_commands",
)

OWNER = 3
WALKS = -1  # in the place of a command: the one whose access it is
LAST_WALK = -2  # the last one before that walked; if there is none, no walk
FLIT_BYTES = 8
# by server: what issues, two units, the ports to read and write, the links there and back
NAMES = ("issue", "fast", "slow", "read", "write", "there", "back")
LATENCIES_PS = dict(zip(range(len(NAMES)), (1, 0, 4, 2, 0, 3, 5), strict=True))
ISSUE, FAST, SLOW, READ, WRITE, THERE, BACK = LATENCIES_PS


@dataclass(frozen=True, slots=True)
class Load:
    """Read a value; ``after`` picks earlier accesses. A walk is NO_WALK, WALKS or LAST_WALK."""

    num_bytes: int
    accesses: tuple[IssuedAccess, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Compute:
    """``operands`` pick values that are there."""

    plan: int
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """``value`` picks one that is there; None is a constant."""

    value: int | None
    num_bytes: int
    accesses: tuple[IssuedAccess, ...]
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """``value`` picks one that is there."""

    value: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a program; another one follows on the same processor."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Hand over what there is."""


Command = Load | Compute | Store | Release | Finish | Cut
Plan = tuple[int, int, int, int, int]  # two steps (route, ps), bytes of the result


@dataclass(frozen=True, slots=True)
class CommandProgram:
    """A processor, and what it is told to do."""

    spec: IssuerSpec
    gate: int
    plans: tuple[Plan, ...]
    commands: tuple[Command, ...]

    def without_cuts(self) -> "CommandProgram":
        kept = tuple(command for command in self.commands if not isinstance(command, Cut))
        return replace(self, commands=kept)


def random_accesses(choices: Choices, trip: int) -> tuple[IssuedAccess, ...]:
    def access() -> IssuedAccess:
        segments = pick(choices, [1, 1, 2, 3])
        size, stride = choices.integer(1, 40), choices.integer(-30, 60)
        walk = pick(choices, [NO_WALK, WALKS, LAST_WALK, LAST_WALK])
        return trip, segments, size, stride, choices.integer(0, 999), walk

    return tuple(some(choices, 2, access, least=1))


def random_command(choices: Choices, num_plans: int, sizes: list[int]) -> Command:
    def number() -> int:
        return choices.integer(0, 99)

    kind = pick(
        choices, [*["compute"] * 6, *["release"] * 5, "load", "load", "store", "cut", "end"]
    )
    if kind == "load":
        after = tuple(some(choices, 2, number))
        return Load(pick(choices, sizes), random_accesses(choices, 0), after)
    if kind == "compute":
        operands = tuple(some(choices, 3, number))
        return Compute(choices.integer(0, num_plans - 1), operands)
    if kind == "store":
        value = pick(choices, [None, *[number()] * 3])
        after = tuple(some(choices, 2, number))
        return Store(value, pick(choices, sizes), random_accesses(choices, 1), after)
    if kind == "release":
        return Release(number())
    return Cut() if kind == "cut" or choices.integer(0, 3) else Finish()


def command_program(choices: Choices) -> CommandProgram:
    """Small spaces and windows, so that commands wait for each other in every way."""
    spec = IssuerSpec(
        issue_route=ISSUE,
        issue_ps=choices.integer(1, 3),
        dispatch_ps=pick(choices, [0, 1, 5]),
        window=choices.integer(1, 6),
        read_route=READ,
        read_bytes_per_us=pick(choices, [10**6, 3 * 10**6]),
        write_route=WRITE,
        write_bytes_per_us=10**6,
        near_bytes=choices.integer(1, 60),
        far_bytes=choices.integer(20, 200),
        hit_ps=pick(choices, [0, 0, 2]),
        walk_ps=pick(choices, [0, 60, 300]),
    )
    sizes = [1, 8, 16, 30]

    def plan() -> Plan:
        first, second = choices.integer(FAST, SLOW), choices.integer(FAST, SLOW)
        first_ps = pick(choices, [1, 3, 9]) if first == FAST else choices.integer(10, 200)
        return first, first_ps, second, pick(choices, [0, 0, 4]), pick(choices, sizes)

    plans = tuple(some(choices, 4, plan, least=1))
    num_commands = choices.integer(1, 40)
    commands = [random_command(choices, len(plans), sizes) for _ in range(num_commands)]
    return CommandProgram(spec, choices.integer(1, 4), plans, tuple(commands))


@dataclass(slots=True)
class Given:
    """A command as it was given: values by their order of making, whatever an issuer calls them."""

    command: Load | Compute | Store
    operands: tuple[int, ...] = ()
    makes: int | None = None
    after: tuple[int, ...] = ()  # commands that it was told to come after
    has_room: bool = True
    program: int = 0  # how many have finished before
    walks: tuple[int, ...] = ()  # of its accesses: the command that each waits for, from 1


@dataclass(slots=True)
class Outcome:
    """All that a caller sees of a run; releases are known by how many commands came before."""

    given: list[Given] = field(default_factory=list)
    released: dict[int, int] = field(default_factory=dict)  # value: commands before
    counters: list[tuple[int, ...]] = field(default_factory=list)
    trace: list[TraceRecord] = field(default_factory=list)
    effects: list[tuple[int, int]] = field(default_factory=list)
    statistics: Statistics | None = None

    @property
    def is_full(self) -> bool:
        return bool(self.given) and not self.given[-1].has_room

    def records(self) -> Iterator[tuple[Given, list[TraceRecord]]]:
        """What each command did, in the order of tasks: each begins with a hold of what issues."""
        groups: list[list[TraceRecord]] = []
        for record in sorted(self.trace, key=lambda record: record.packet_id):
            if record.server == ISSUE:
                groups.append([])
            groups[-1].append(record)
        return zip(self.given, groups, strict=True)


@dataclass(slots=True)
class _Driver:
    """Tells an issuer what a program says; stops where there is no room."""

    program: CommandProgram
    issuer: Issuer
    outcome: Outcome = field(default_factory=Outcome)
    numbers: dict[int, int] = field(default_factory=dict)  # of values: what the issuer calls them
    accesses: list[tuple[int, int]] = field(default_factory=list)  # command, its last task
    num_values: int = 0
    num_finished: int = 0
    last_walk: int = NO_WALK

    def issue(self, command: Load | Compute | Store) -> bool:
        given = Given(command, program=self.num_finished)
        self.outcome.given.append(given)
        served = len(self.outcome.given)
        match command:
            case Compute(plan, picks):
                given.operands = tuple(self._values(picks))
                operands = [self.numbers[value] for value in given.operands]
                self._make(given, self.issuer.compute(plan, operands))
            case Load(num_bytes, accesses, picks):
                after = self._after(given, picks)
                walked = self._walked(given, accesses)
                self._make(given, self.issuer.load(num_bytes, walked, after, served))
                if given.has_room:
                    task = self.issuer.task_of(next(reversed(self.numbers.values())))
                    self.accesses.append((served - 1, task))
            case Store(picked, num_bytes, accesses, picks):
                after = self._after(given, picks)
                given.operands = () if picked is None else tuple(self._values((picked,)))
                value = self.numbers[given.operands[0]] if given.operands else NO_VALUE
                walked = self._walked(given, accesses)
                task = self.issuer.store(value, num_bytes, walked, after, served)
                given.has_room = task != NO_ROOM
                self.accesses.append((served - 1, task))
        issuer = self.issuer
        counters = (issuer.num_commands, issuer.spilled_bytes, issuer.far_free_bytes)
        self.outcome.counters.append((*counters, issuer.num_waiting))
        return given.has_room

    def _walked(self, given: Given, accesses: tuple[IssuedAccess, ...]) -> list[IssuedAccess]:
        """With the commands that they wait for."""
        command = len(self.outcome.given)
        meant = {NO_WALK: NO_WALK, WALKS: command, LAST_WALK: self.last_walk}
        given.walks = tuple(meant[access[-1]] for access in accesses)
        self.last_walk = max(self.last_walk, *given.walks)
        return [(*access[:-1], walk) for access, walk in zip(accesses, given.walks, strict=True)]

    def release(self, picked: int) -> None:
        for value in self._values((picked,)):
            self.issuer.release(self.numbers.pop(value))
            self.outcome.released[value] = len(self.outcome.given)

    def finish(self) -> None:
        self.issuer.finish()
        self.num_finished += 1
        for value in self.numbers:
            self.outcome.released[value] = len(self.outcome.given)
        self.numbers.clear()

    def _make(self, given: Given, number: int) -> None:
        given.has_room = number != NO_ROOM
        if given.has_room:
            given.makes = self.num_values
            self.numbers[self.num_values] = number
            self.num_values += 1

    def _values(self, picks: tuple[int, ...]) -> Iterator[int]:
        values = list(self.numbers)
        return (values[number % len(values)] for number in picks if values)

    def _after(self, given: Given, picks: tuple[int, ...]) -> list[int]:
        chosen = [self.accesses[number % len(self.accesses)] for number in picks if self.accesses]
        given.after = tuple(command for command, _ in chosen)
        return [task for _, task in chosen]


def machine_of(program: CommandProgram, kind: EngineKind, salt: int) -> tuple[Engine, Issuer]:
    engine = build_engine(kind, EngineSpec(FLIT_BYTES, packet_flits=2, arrival_salt=salt))
    for number, name in enumerate(NAMES):
        rate = 4 * 10**6 if number in (THERE, BACK) else None
        engine.add_route([engine.add_server(ServerSpec(name, rate, LATENCIES_PS[number]))])
    gate = engine.add_gate(program.gate)
    for writes in (False, True):
        engine.add_round_trip(THERE, BACK, gate=gate, writes=writes)
    issuer = engine.add_issuer(program.spec)
    for plan in program.plans:
        issuer.add_plan(list(plan))
    return engine, issuer


def run_commands(program: CommandProgram, kind: EngineKind, *, salt: int = 0) -> Outcome:
    """Tell all commands at one instant, let time pass, gather what there is to see."""
    engine, issuer = machine_of(program, kind, salt)
    engine.set_trace(True)
    driver = _Driver(program, issuer)
    for command in program.commands:
        match command:
            case Release(value):
                driver.release(value)
            case Finish():
                driver.finish()
            case Cut():
                engine.submit_piece(issuer, owner=OWNER)
            case _ if not driver.issue(command):
                break
    engine.submit_piece(issuer, owner=OWNER)
    engine.run()
    outcome = driver.outcome
    outcome.trace, outcome.effects = engine.take_trace(), engine.take_effects()
    outcome.statistics = engine.statistics()
    return outcome
