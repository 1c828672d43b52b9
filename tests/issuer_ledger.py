"""What the commands of an issuer took when, by the words of the specification."""

from collections import Counter
from dataclasses import dataclass, field

from tests.issuer_programs import (
    BACK,
    FAST,
    LATENCIES_PS,
    READ,
    SLOW,
    THERE,
    WRITE,
    CommandProgram,
    Compute,
    Given,
    Load,
    Outcome,
    Plan,
    Store,
)
from tilewright.engine import TraceRecord
from tilewright.engine.core import NO_WALK
from tilewright.engine.issuer import IssuerSpec

__all__ = ("Ledger", "Step", "ledger_of", "steps_of")

FOREVER = 10**18


def end_ps(record: TraceRecord) -> int:
    return record.tail_ps + LATENCIES_PS[record.server]


@dataclass
class Step:
    """A command with the times of its parts."""

    given: Given
    issue: TraceRecord
    reads: list[TraceRecord] = field(default_factory=list)
    works: list[TraceRecord] = field(default_factory=list)
    writes: list[TraceRecord] = field(default_factory=list)
    there: list[TraceRecord] = field(default_factory=list)
    back: list[TraceRecord] = field(default_factory=list)

    @property
    def issued_ps(self) -> int:
        return end_ps(self.issue)

    @property
    def work_ps(self) -> int:
        return end_ps(self.works[-1])

    @property
    def ended_ps(self) -> int:
        return max(map(end_ps, (self.issue, *self.works, *self.writes, *self.back)))


def steps_of(outcome: Outcome) -> list[Step]:
    found = []
    for one, (issue, *records) in outcome.records():
        step = Step(one, issue)
        for record in records:
            parts = {
                FAST: step.works,
                SLOW: step.works,
                READ: step.reads,
                WRITE: step.writes,
                THERE: step.there,
                BACK: step.back,
            }
            parts[record.server].append(record)
        found.append(step)
    return found


@dataclass
class Value:
    """Where the bytes of a value are, and from when to when each part is taken."""

    num_bytes: int
    made_ps: int
    near: int = 0
    far: int = 0
    near_from_ps: int = 0
    far_from_ps: int = 0
    last_use_ps: int = 0


@dataclass
class Ledger:
    """Goes through the commands of a run by the words of the specification."""

    spec: IssuerSpec
    plans: tuple[Plan, ...]
    released: dict[int, int]
    near_free: int
    far_free: int
    values: dict[int, Value] = field(default_factory=dict)
    taken: list[tuple[str, int, int, int]] = field(default_factory=list)  # space, from, to, bytes
    spilled: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def go_through(self, steps: list[Step]) -> None:
        program = 0
        for number, step in enumerate(steps):
            self.drop(number)
            if step.given.program > program:
                program = step.given.program
                self.near_free, self.far_free = self.spec.near_bytes, self.spec.far_bytes
            command = step.given.command
            if isinstance(command, Compute):
                self.compute(step, command)
            elif isinstance(command, Load):
                self.load(step, command)
            else:
                self.store(step, command)
            for before in step.given.after:
                if step.there:
                    least = steps[before].ended_ps + self.spec.dispatch_ps
                    assert min(record.ready_ps for record in step.there) >= least
            self.translate(step, steps)
        self.drop(len(steps))
        for value in self.values.values():
            self.occupy(value, FOREVER)

    def translate(self, step: Step, steps: list[Step]) -> None:
        """No access goes before the walk that it waits for has ended, or its look-up."""
        sent_ps = [record.ready_ps for record in step.there]
        if not sent_ps:
            return
        least_ps, spec = [], self.spec
        for walk in step.given.walks:
            own_ps = step.issued_ps + spec.hit_ps
            walked_ps = steps[walk - 1].issued_ps + spec.walk_ps if walk != NO_WALK else 0
            is_own = walk != NO_WALK and steps[walk - 1] is step
            least_ps.append((walked_ps if is_own else max(own_ps, walked_ps)) + spec.dispatch_ps)
            self.seen["walk"] += is_own
            self.seen["under a walk"] += not is_own and walked_ps > own_ps
        assert min(sent_ps) >= min(least_ps)
        assert max(sent_ps) >= max(least_ps)

    def drop(self, number: int) -> None:
        """The values that are gone before this command; their bytes may be taken again."""
        for name, place in self.released.items():
            if place == number and name in self.values:
                value = self.values.pop(name)
                self.near_free += value.near
                self.far_free += value.far
                self.occupy(value, value.last_use_ps)

    def occupy(self, value: Value, until_ps: int) -> None:
        self.taken.append(("near", value.near_from_ps, until_ps, value.near))
        self.taken.append(("far", value.far_from_ps, until_ps, value.far))

    def compute(self, step: Step, command: Compute) -> None:
        *_, num_bytes = self.plans[command.plan]
        reads, dispatch_ps = iter(step.reads), self.spec.dispatch_ps
        there_ps = [step.issued_ps]
        for name in step.given.operands:
            value = self.values[name]
            there_ps.append(value.made_ps)
            if value.near < value.num_bytes:
                there_ps.append(self.fetch(step, value, next(reads)))
        assert next(reads, None) is None
        assert step.works[0].start_ps >= max(there_ps) + dispatch_ps
        near = min(num_bytes, self.near_free)
        far = num_bytes - near
        self.near_free -= near
        assert step.given.has_room == (far <= self.far_free)
        if not step.given.has_room:
            self.seen["no room"] += 1
            return
        self.far_free -= far
        self.spilled += far
        self.seen["spill"] += bool(far)
        for name in step.given.operands:
            self.use(self.values[name], step.work_ps)
        for write in step.writes:
            assert write.start_ps >= step.work_ps + dispatch_ps
            assert far
        from_ps = step.writes[0].start_ps if far else 0
        made = Value(num_bytes, step.ended_ps, near, far, step.works[0].start_ps, from_ps)
        self.make(step, made)

    def fetch(self, step: Step, value: Value, read: TraceRecord) -> int:
        missing = value.num_bytes - value.near
        least_ps = max(step.issued_ps, value.made_ps) + self.spec.dispatch_ps
        assert read.start_ps >= least_ps
        hold_ps = -(-missing * 10**6 // self.spec.read_bytes_per_us)
        assert read.tail_ps - read.start_ps == hold_ps
        if not value.near:
            value.near = min(missing, self.near_free)
            self.near_free -= value.near
            value.near_from_ps = read.start_ps
        self.seen["partly near"] += 0 < value.near < value.num_bytes
        if value.near == value.num_bytes:
            value.made_ps = end_ps(read)
        self.use(value, end_ps(read))
        return end_ps(read)

    def load(self, step: Step, command: Load) -> None:
        assert step.given.has_room == (command.num_bytes <= self.far_free)
        if not step.given.has_room:
            self.seen["no room"] += 1
            return
        self.far_free -= command.num_bytes
        from_ps = min(record.ready_ps for record in step.there)
        assert from_ps >= step.issued_ps + self.spec.dispatch_ps
        made = Value(command.num_bytes, step.ended_ps, far=command.num_bytes, far_from_ps=from_ps)
        self.make(step, made)

    def store(self, step: Step, command: Store) -> None:
        value = self.values[step.given.operands[0]] if step.given.operands else None
        is_staged = value is None or value.far < value.num_bytes
        assert step.given.has_room == (not is_staged or command.num_bytes <= self.far_free)
        if not step.given.has_room:
            self.seen["no room"] += 1
            return
        least_ps = max(step.issued_ps, 0 if value is None else value.made_ps)
        assert len(step.writes) == is_staged
        for write in step.writes:
            assert write.start_ps >= least_ps + self.spec.dispatch_ps
            least_ps = end_ps(write)
            self.taken.append(("far", write.start_ps, step.ended_ps, command.num_bytes))
        sent_ps = min(record.ready_ps for record in step.there)
        assert sent_ps >= least_ps + self.spec.dispatch_ps
        self.seen["staged"] += is_staged
        if value is not None:
            self.use(value, step.ended_ps)

    def make(self, step: Step, value: Value) -> None:
        assert step.given.makes is not None
        value.last_use_ps = step.ended_ps
        self.values[step.given.makes] = value

    def use(self, value: Value, until_ps: int) -> None:
        value.last_use_ps = max(value.last_use_ps, until_ps)

    def total(self, space: str) -> int:
        """All bytes that were ever taken."""
        return sum(num_bytes for name, *_, num_bytes in self.taken if name == space)

    def most(self, space: str) -> int:
        """The most bytes that were taken at one instant; what ends then is free for what begins."""
        changes = sorted(
            change
            for name, from_ps, to_ps, num_bytes in self.taken
            if name == space and num_bytes
            for change in ((from_ps, num_bytes), (to_ps, -num_bytes))
        )
        now = most = 0
        for _, change in changes:
            now += change
            most = max(most, now)
        return most


def ledger_of(program: CommandProgram, outcome: Outcome) -> Ledger:
    spec = program.spec
    ledger = Ledger(spec, program.plans, outcome.released, spec.near_bytes, spec.far_bytes)
    ledger.go_through(steps_of(outcome))
    return ledger
