"""Commands of one processor in the order of their issue: what each comes after, what it occupies.

Integers in, integers out: tasks, values and plans are numbers here. A *value* is what a command has
made or loaded and the program still holds. It lies in a near space, where commands work on it, and
for the rest in a far one.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.engine.core import (
    EXCHANGE,
    FROM_START,
    HOLD,
    NO_ROOM,
    NO_TASK,
    NO_VALUE,
    NO_WALK,
    TIMER,
    IssuedAccess,
    IssuedStep,
)
from tilewright.engine.space import UNTOUCHED, Compile, IssuedValue, OpenComposite, Pieces, Space
from tilewright.units import PS_PER_US

FIRST_TASK = 0


@dataclass(frozen=True, slots=True)
class IssuerSpec:
    """A command holds the issuing server; its work is dispatched ``dispatch_ps`` after it has been
    issued and its operands are there.
    """

    issue_route: int
    issue_ps: int
    dispatch_ps: int
    window: int  # commands that may be under way
    read_route: int  # the port from far to near
    read_bytes_per_us: int
    write_route: int  # the port from near to far
    write_bytes_per_us: int
    near_bytes: int
    far_bytes: int
    hit_ps: int = 0  # from its issue on, until an access may go whose pages are at hand
    walk_ps: int = 0  # the same of one for whose pages a table is walked


class Issuer(Pieces):
    """What an issuer of either core does; this is the living definition.

    A command is issued after the one before it, and after the end of the one a window before it.
    Tasks are numbered 0, 1, ... over all pieces.
    """

    def __init__(
        self, compile_rows: Compile, spec: IssuerSpec, is_complete: Callable[[int], bool]
    ) -> None:
        super().__init__(compile_rows, is_complete)
        self.spec = spec
        self.num_commands = 0
        self.spilled_bytes = 0
        self._near = Space(spec.near_bytes, spec.window)
        self._far = Space(spec.far_bytes, spec.window)
        self._plans: list[list[int]] = []
        self._values: dict[int, IssuedValue] = {}
        self._num_values = 0
        self._under_way: deque[int] = deque(maxlen=spec.window)
        self.last_issue = NO_TASK  # that issued the last command
        self._stalls: list[int] = []  # tasks that the next command is issued after
        self._composite: OpenComposite | None = None
        self._walks: dict[int, int] = {}  # by command: its walk
        self._hit = NO_WALK, NO_TASK  # the last command that paid for one, and how

    @property
    def far_free_bytes(self) -> int:
        return self._far.free_bytes

    # -- commands --------------------------------------------------------------------------------

    def add_plan(self, plan: list[int]) -> int:
        """Two steps (route, hold_ps), the second may be 0 ps, and the bytes of the result."""
        self._plans.append(plan)
        return len(self._plans) - 1

    def compute(self, plan: int, operands: list[int]) -> int:
        """A command that brings its operands near, works on them, and makes a value.

        A value that came from far stays near if there is room, and so does the result; what does
        not fit goes far and is brought again at each use.
        """
        *steps, num_bytes = self._plans[plan]
        issue = self._issue()
        after = [issue]
        values = [self._values[operand] for operand in operands]
        for value in values:
            is_near = value.near_bytes == value.num_bytes
            after.append(value.task if is_near else self._fetch(value, issue))
        near_bytes = min(num_bytes, self._near.free_bytes)
        after += self._near.take(near_bytes)
        task = work = self._work(steps, after)
        spilled_bytes = num_bytes - near_bytes
        if spilled_bytes:
            if spilled_bytes > self._far.free_bytes:
                return NO_ROOM
            self.spilled_bytes += spilled_bytes
            task = self._write([work], spilled_bytes)
        self._complete(task)
        for value in values:
            self._note_use(value, work)
        return self._add(IssuedValue(num_bytes, near_bytes, spilled_bytes, task))

    def load(
        self, num_bytes: int, accesses: list[IssuedAccess], after: list[int], served: int
    ) -> int:
        """A command that reads a value from memory to the far space."""
        tasks = self._make_room(num_bytes)
        if tasks is None:
            return NO_ROOM
        task = self._access(accesses, [*tasks, *after], served)
        return self._add(IssuedValue(num_bytes, 0, num_bytes, task))

    def receive(self, num_bytes: int, steps: list[IssuedStep]) -> int:
        """A command that makes a value in the far space by given steps; ``NO_ROOM`` as a load."""
        tasks = self._make_room(num_bytes)
        if tasks is None:
            return NO_ROOM
        return self._add(IssuedValue(num_bytes, 0, num_bytes, self._steps(steps, tasks)))

    def store(
        self,
        value: int,
        num_bytes: int,
        accesses: list[IssuedAccess],
        after: list[int],
        served: int,
    ) -> int:
        """A command that writes bytes of a value, or of a constant, to memory; returns its end.

        What is not all in the far space goes there first.
        """
        tasks = self._stage(value, num_bytes)
        if tasks is None:
            return NO_ROOM
        return self._unstage(value, num_bytes, self._access(accesses, [*tasks, *after], served))

    def send(self, value: int, num_bytes: int, steps: list[IssuedStep]) -> int:
        """A command that takes a value, or a constant, elsewhere by given steps; returns its end.

        What is not all in the far space goes there first, as for a store.
        """
        tasks = self._stage(value, num_bytes)
        if tasks is None:
            return NO_ROOM
        return self._unstage(value, num_bytes, self._steps(steps, tasks))

    def update(self, plan: int, value: int, operands: list[tuple[int, int]]) -> int:
        """A command whose result takes the place of a value that an update has made.

        ``NO_VALUE`` makes one, which has to fit the near space: ``NO_ROOM`` if it does not. Each
        operand is a value and the bytes of it that are needed; they are read from far each time and
        do not stay near.
        """
        *steps, num_bytes = self._plans[plan]
        issue = self._issue()
        after = [issue]
        for operand, needed_bytes in operands:
            after += self._stream(self._values[operand], needed_bytes, issue)
        target = None
        if value != NO_VALUE:
            target = self._values[value]
            after += [target.task, *target.uses]
        elif num_bytes > self._near.free_bytes:
            return NO_ROOM
        else:
            after += self._near.take(num_bytes)
        task = self._work(steps, after)
        self._complete(task)
        for operand, _ in operands:
            self._note_use(self._values[operand], task)
        if target is None:
            return self._add(IssuedValue(num_bytes, num_bytes, 0, task))
        target.task = task
        self._touch(target, 0)
        target.uses = [task]  # which comes after all others
        return value

    def park(self, value: int) -> int:
        """A command that moves a value to the far space; its end, or ``NO_ROOM``."""
        issue = self._issue()
        parked = self._values[value]
        num_bytes = parked.num_bytes - parked.far_bytes
        if num_bytes > self._far.free_bytes:
            return NO_ROOM
        task = parked.task
        if num_bytes:
            task = self._write([issue, parked.task], num_bytes)
        self._complete(task)
        self._note_use(parked, task)
        if parked.near_bytes:
            self._near.give(
                parked.near_bytes, parked.uses, in_composite=self._composite is not None
            )
        parked.near_bytes, parked.far_bytes, parked.task = 0, parked.num_bytes, task
        return task

    def open_composite(self) -> None:
        """A command whose parts are the commands up to ``close_composite``.

        They come after its issue, are not issued themselves and enter no window.
        """
        self._composite = OpenComposite(self._issue())

    def close_composite(self) -> int:
        """The task that ends with all parts of the composite."""
        composite = self._composite
        if composite is None:
            return NO_TASK
        self._composite = None
        task = self._join(composite.ends or [composite.issue])
        for value in composite.touched:
            if value.uses_before != UNTOUCHED:
                value.uses[value.uses_before :] = [task]
                value.uses_before = UNTOUCHED
        self._complete(task)
        return task

    def release(self, value: int) -> None:
        """The program holds the value no more: its bytes are free when its uses have ended."""
        gone = self._values.pop(value)
        gone.uses_before = UNTOUCHED
        in_composite = self._composite is not None
        if gone.near_bytes:
            self._near.give(gone.near_bytes, gone.uses, in_composite=in_composite)
        if gone.far_bytes:
            self._far.give(gone.far_bytes, gone.uses, in_composite=in_composite)

    def task_of(self, value: int) -> int:
        """The task after which a value is there."""
        return self._values[value].task

    def walk_of(self, command: int) -> int:
        """The task that ends with the walk of a command, which had one."""
        return self._walks.get(command, FIRST_TASK)  # one that is forgotten has ended

    def stall(self, task: int) -> None:
        """The next command is not issued before this task has ended."""
        self._stalls.append(task)

    @property
    def stalls(self) -> list[int]:
        """The tasks that the next command is not issued before."""
        return list(self._stalls)

    def finish(self) -> None:
        """The next command comes after all others; all values are gone."""
        if self._under_way:
            self.last_issue = self._join(self._under_way)
        self._under_way.clear()
        self._stalls.clear()  # each of them ends before a command that was under way
        self._values.clear()
        self._near = Space(self.spec.near_bytes, self.spec.window)
        self._far = Space(self.spec.far_bytes, self.spec.window)

    # -- parts of commands -----------------------------------------------------------------------

    def _make_room(self, num_bytes: int) -> list[int] | None:
        """Issue a command that brings bytes to the far space; None: they do not fit there."""
        issue = self._issue()
        if num_bytes > self._far.free_bytes:
            return None
        return [issue, *self._far.take(num_bytes)]

    def _is_staged(self, value: int) -> bool:
        """Whether bytes that leave have to be put into the far space first."""
        return value == NO_VALUE or self._values[value].far_bytes < self._values[value].num_bytes

    def _stage(self, value: int, num_bytes: int) -> list[int] | None:
        """Issue a command whose bytes leave the far space; None: they do not fit there."""
        tasks = [self._issue()]
        if value != NO_VALUE:
            tasks.append(self._values[value].task)
        if not self._is_staged(value):
            return tasks
        if num_bytes > self._far.free_bytes:
            return None
        return [self._write(tasks, num_bytes)]

    def _unstage(self, value: int, num_bytes: int, task: int) -> int:
        """The bytes have left with this task, which is returned."""
        if value != NO_VALUE:
            self._note_use(self._values[value], task)
        if self._is_staged(value):
            self._far.give(num_bytes, [task])
        return task

    def _issue(self) -> int:
        if self._composite is not None:
            return self._composite.issue
        spec = self.spec
        after = [] if self.last_issue < 0 else [self.last_issue]
        if len(self._under_way) == spec.window:
            after.append(self._under_way[0])
        after += self._stalls
        self._stalls.clear()
        self.last_issue = self._hold(spec.issue_route, spec.issue_ps, after, delay_ps=0)
        self.num_commands += 1
        return self.last_issue

    def _complete(self, task: int) -> int:
        """A command, or a part of the composite, ends with this task, which is returned."""
        ends = self._under_way if self._composite is None else self._composite.ends
        ends.append(task)
        return task

    def _note_use(self, value: IssuedValue, task: int) -> None:
        self._touch(value, len(value.uses))
        value.note_use(task)
        if self._composite is None:
            value.forget_uses(self.spec.window)

    def _touch(self, value: IssuedValue, uses_before: int) -> None:
        """The composite's uses of a value become one when it closes."""
        if self._composite is None:
            return
        if value.uses_before == UNTOUCHED:
            self._composite.touched.append(value)
            value.uses_before = uses_before
        value.uses_before = min(value.uses_before, uses_before)

    def _work(self, steps: list[int], after: Sequence[int]) -> int:
        dispatch_ps = self.spec.dispatch_ps
        first_route, first_ps, second_route, second_ps = steps
        task = self._hold(first_route, first_ps, after, delay_ps=dispatch_ps)
        if second_ps:
            task = self._hold(second_route, second_ps, (task,), delay_ps=dispatch_ps)
        return task

    def _fetch(self, value: IssuedValue, issue: int) -> int:
        """Bring near what is missing of a value; one that came from far then stays."""
        spec = self.spec
        missing = value.num_bytes - value.near_bytes
        after = [issue, value.task]
        if not value.near_bytes:
            value.near_bytes = min(missing, self._near.free_bytes)
            after += self._near.take(value.near_bytes)
        hold_ps = _port_ps(missing, spec.read_bytes_per_us)
        task = self._hold(spec.read_route, hold_ps, after, delay_ps=spec.dispatch_ps)
        if value.near_bytes == value.num_bytes:
            value.task = task
        return task

    def _stream(self, value: IssuedValue, needed_bytes: int, issue: int) -> list[int]:
        """Bytes of a value go by: what of them is far is read, and does not stay near."""
        missing = value.num_bytes - value.near_bytes
        if not missing:
            return [value.task]
        spec = self.spec
        read_bytes = -(-needed_bytes * missing // value.num_bytes)
        hold_ps = _port_ps(read_bytes, spec.read_bytes_per_us)
        after = (issue, value.task)
        return [self._hold(spec.read_route, hold_ps, after, delay_ps=spec.dispatch_ps)]

    def _write(self, after: list[int], num_bytes: int) -> int:
        """Put bytes into the far space, where there is room for them."""
        spec = self.spec
        hold_ps = _port_ps(num_bytes, spec.write_bytes_per_us)
        after = [*after, *self._far.take(num_bytes)]
        return self._hold(spec.write_route, hold_ps, after, delay_ps=spec.dispatch_ps)

    def _access(self, accesses: list[IssuedAccess], after: Sequence[int], served: int) -> int:
        """The exchanges of a load or store; the task that ends with the last of them."""
        dispatch_ps = self.spec.dispatch_ps
        tasks = []
        for trip, num_segments, segment_bytes, stride_bytes, address, walk in accesses:
            segments = () if num_segments == 1 else (segment_bytes, stride_bytes)
            num_bytes = num_segments * segment_bytes
            befores = [*after, *self._translation(walk)]
            task = self._task(
                EXCHANGE, trip, num_bytes, dispatch_ps, befores, address, (), (), served, segments
            )
            tasks.append(task)
        return self._complete(tasks[0] if len(tasks) == 1 else self._join(tasks))

    def _translation(self, walk: int) -> list[int]:
        """What an access waits for until it knows where its pages are."""
        spec, command = self.spec, self.num_commands
        if walk == command:
            if walk not in self._walks:
                self._walks[walk] = self._since_issue(spec.walk_ps)
            return [self._walks[walk]]
        found = []
        if spec.hit_ps:
            if self._hit[0] != command:
                self._hit = command, self._since_issue(spec.hit_ps)
            found.append(self._hit[1])
        if walk != NO_WALK and walk > command - spec.window:  # those before have ended
            found.append(self.walk_of(walk))
        return found

    def _since_issue(self, delay_ps: int) -> int:
        issue = self.last_issue if self._composite is None else self._composite.issue
        return self._task(TIMER, 0, 0, delay_ps, (issue,))

    def _steps(self, steps: list[IssuedStep], after: Sequence[int]) -> int:
        """Steps of a message; the task that ends with those that the command ends with."""
        tasks: list[int] = []
        ends = []
        for kind, target, amount, tag, before, waits, raises, served, is_end in steps:
            befores = after if before == FROM_START else (tasks[before],)
            delay_ps = self.spec.dispatch_ps if before == FROM_START else 0
            task = self._task(kind, target, amount, delay_ps, befores, tag, waits, raises, served)
            tasks.append(task)
            if is_end:
                ends.append(tasks[-1])
        return self._complete(ends[0] if len(ends) == 1 else self._join(ends))

    # -- tasks -----------------------------------------------------------------------------------

    def _hold(self, route: int, hold_ps: int, after: Sequence[int], *, delay_ps: int) -> int:
        return self._task(HOLD, route, hold_ps, delay_ps, after)

    def _join(self, after: Sequence[int]) -> int:
        return self._task(TIMER, 0, 0, 0, after)

    def _add(self, value: IssuedValue) -> int:
        number = self._num_values
        self._num_values = number + 1
        self._values[number] = value
        self._touch(value, 0)
        return number

    def _forget_before(self, first: int) -> None:
        while self._walks and next(iter(self._walks.values())) < first:
            del self._walks[next(iter(self._walks))]
        self._near.forget_ended(first)
        self._far.forget_ended(first)


def _port_ps(num_bytes: int, bytes_per_us: int) -> int:
    """Rounded up once for each access."""
    return -(-num_bytes * PS_PER_US // bytes_per_us)
