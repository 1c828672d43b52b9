"""The commands of one PE in the order of their issue: what each comes after, and what it occupies.

Integers in, integers out: tasks, values and plans are numbers here. A *value* is a block that some
command made or loaded and that the kernel still holds.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from tilewright.device.pe import Pe
from tilewright.engine import Engine, TaskGraph
from tilewright.engine.hub import Hub
from tilewright.engine.rows import EARLIER, EXCHANGE, HOLD, NO_EFFECT, TIMER, Row
from tilewright.language.space import Space

__all__ = ("Access", "Issuer", "OutOfTcmError")

PIECE_TASKS = 2**16
Access = tuple[int, int, int, int, int, int]
"""Round trip, segments, bytes of a segment, stride, address, time of the page walk."""


class OutOfTcmError(Exception):
    """A tile does not fit; whoever knows the tiles tells the user."""


class _Value:
    """Where a block lies, when it is there, and who uses it."""

    __slots__ = ("num_bytes", "register_bytes", "task", "tcm_bytes", "uses")

    def __init__(self, num_bytes: int, register_bytes: int, tcm_bytes: int, task: int) -> None:
        self.num_bytes = num_bytes
        self.register_bytes = register_bytes
        self.tcm_bytes = tcm_bytes
        self.task = task
        self.uses = [task]


class Issuer:
    """A command is one hold of the CPU, after the command before it and after the end of the one a
    window before it; then its work, dispatched when the CPU and the last operand are ready.

    Loaded tiles lie in the TCM. A command that computes brings its operands to registers, where
    they stay if there is room, and puts its result there; what does not fit is spilled to the TCM
    and read at each use.

    Tasks are numbered 0, 1, ... over all pieces; a piece is handed over when it is long enough, or
    when somebody waits.
    """

    def __init__(self, hub: Hub, engine: Engine, pe: Pe) -> None:
        self.pe = pe
        self.num_commands = 0
        self.spilled_bytes = 0
        self.registers = Space(pe.register_bytes, pe.window)
        self.tcm = Space(pe.tcm.usable_bytes, pe.window)
        self._engine = engine
        self._hub = hub
        self._plans: list[tuple[int, int, int]] = []
        self._values: dict[int, _Value] = {}
        self._num_values = 0
        self._rows: list[Row] = []  # of the current piece: what a TaskGraph is made of
        self._base = 0  # number of its first task
        self._earlier: dict[int, int] = {}  # tasks of earlier pieces in this one
        self._starts: list[int] = []  # of the pieces handed over
        self._pieces: list[tuple[int, list[int]]] = []  # their first id, and offsets
        self._window: deque[int] = deque(maxlen=pe.window)
        self._last_issue = -1

    # -- commands --------------------------------------------------------------------------------

    def add_plan(self, vector_ps: int, gemm_ps: int, num_bytes: int) -> int:
        """Work of that long, on the GEMM unit and then on the vector unit, with such a result."""
        self._plans.append((vector_ps, gemm_ps, num_bytes))
        return len(self._plans) - 1

    def compute(self, plan: int, operands: Sequence[int]) -> int:
        """A command of the GEMM or vector unit; returns its value."""
        vector_ps, gemm_ps, num_bytes = self._plans[plan]
        issue = self._issue()
        after = [issue]
        values = [self._values[operand] for operand in operands]
        for value in values:
            if value.register_bytes == value.num_bytes:
                after.append(value.task)
            else:
                after.append(self._fetch(value, issue))
        register_bytes = min(num_bytes, self.registers.free_bytes)
        after += self.registers.take(register_bytes)
        work = self._work(vector_ps, gemm_ps, after)
        spilled_bytes = num_bytes - register_bytes
        task = self._spill(spilled_bytes, work) if spilled_bytes else work
        self._window.append(task)
        for value in values:
            value.uses.append(work)
        return self._add(_Value(num_bytes, register_bytes, spilled_bytes, task))

    def load(
        self, num_bytes: int, accesses: Sequence[Access], after: Sequence[int], served: int
    ) -> int:
        """A tile of the TCM from memory; returns its value."""
        tasks = [self._issue(), *self._take_tcm(num_bytes), *after]
        return self._add(_Value(num_bytes, 0, num_bytes, self._access(accesses, tasks, served)))

    def store(
        self,
        value: int | None,
        num_bytes: int,
        accesses: Sequence[Access],
        after: Sequence[int],
        served: int,
    ) -> int:
        """Bytes of a value, or of a constant, to memory; returns the task that ends it.

        What is not in the TCM goes there first, through its write port.
        """
        tasks = [self._issue()]
        source = None if value is None else self._values[value]
        if source is not None:
            tasks.append(source.task)
        is_staged = source is None or source.tcm_bytes < source.num_bytes
        if is_staged:
            tasks += self._take_tcm(num_bytes)
            hold_ps = self.pe.tcm.write_ps(num_bytes)
            tasks = [self._hold(self.pe.write_route, hold_ps, tasks)]
        tasks += after
        task = self._access(accesses, tasks, served)
        if source is not None:
            source.uses.append(task)
        if is_staged:
            self.tcm.give(num_bytes, [task])
        return task

    def release(self, value: int) -> None:
        """The kernel holds the value no more: its bytes are free when its uses have ended."""
        gone = self._values.pop(value)
        if gone.register_bytes:
            self.registers.give(gone.register_bytes, gone.uses)
        if gone.tcm_bytes:
            self.tcm.give(gone.tcm_bytes, gone.uses)

    def task_of(self, value: int) -> int:
        """The task after which a value is there."""
        return self._values[value].task

    def finish(self) -> None:
        """End of a program: the next command comes after all others, and all space is free."""
        self._last_issue = self._join(self._window)
        self._window.clear()
        self._values.clear()
        self.registers = Space(self.pe.register_bytes, self.pe.window)
        self.tcm = Space(self.pe.tcm.usable_bytes, self.pe.window)

    # -- parts of commands -----------------------------------------------------------------------

    def _issue(self) -> int:
        if len(self._rows) >= PIECE_TASKS:
            self.hand_over()
        window, pe = self._window, self.pe
        after = [] if self._last_issue < 0 else [self._last_issue]
        if len(window) == pe.window:
            after.append(window[0])
        indices = self._indices(after)
        row = (HOLD, pe.cpu_route, pe.issue_ps, 0, NO_EFFECT, 0, indices, (), (), NO_EFFECT, ())
        self._last_issue = task = self._append(row)
        self.num_commands += 1
        return task

    def _work(self, vector_ps: int, gemm_ps: int, after: Sequence[int]) -> int:
        if not gemm_ps:
            return self._hold(self.pe.vector_route, vector_ps, after)
        task = self._hold(self.pe.gemm_route, gemm_ps, after)
        return self._hold(self.pe.vector_route, vector_ps, (task,)) if vector_ps else task

    def _fetch(self, value: _Value, issue: int) -> int:
        """Bring what is missing of a value from the TCM; a loaded tile then stays in registers."""
        missing = value.num_bytes - value.register_bytes
        after = [issue, value.task]
        if not value.register_bytes:
            value.register_bytes = min(missing, self.registers.free_bytes)
            after += self.registers.take(value.register_bytes)
        task = self._hold(self.pe.read_route, self.pe.tcm.read_ps(missing), after)
        value.uses.append(task)
        if value.register_bytes == value.num_bytes:
            value.task = task
        return task

    def _spill(self, num_bytes: int, work: int) -> int:
        self.spilled_bytes += num_bytes
        after = [work, *self._take_tcm(num_bytes)]
        return self._hold(self.pe.write_route, self.pe.tcm.write_ps(num_bytes), after)

    def _take_tcm(self, num_bytes: int) -> Sequence[int]:
        if num_bytes > self.tcm.free_bytes:
            raise OutOfTcmError
        return self.tcm.take(num_bytes)

    def _access(self, accesses: Sequence[Access], after: Sequence[int], served: int) -> int:
        """The exchanges of a load or store; the task that ends with the last of them."""
        indices, dispatch_ps = self._indices(after), self.pe.dispatch_ps
        tasks = []
        for trip, num_segments, segment_bytes, stride_bytes, address, walk_ps in accesses:
            segments = () if num_segments == 1 else (segment_bytes, stride_bytes)
            num_bytes, delay_ps = num_segments * segment_bytes, dispatch_ps + walk_ps
            tasks.append(
                self._append(
                    (EXCHANGE, trip, num_bytes, delay_ps, NO_EFFECT, address, indices, (), (),
                     served, segments)
                )
            )  # fmt: skip
        task = tasks[0] if len(tasks) == 1 else self._join(tasks)
        self._window.append(task)
        return task

    # -- tasks -----------------------------------------------------------------------------------

    def _hold(self, route: int, hold_ps: int, after: Sequence[int]) -> int:
        indices, delay_ps = self._indices(after), self.pe.dispatch_ps
        return self._append(
            (HOLD, route, hold_ps, delay_ps, NO_EFFECT, 0, indices, (), (), NO_EFFECT, ())
        )

    def _join(self, after: Sequence[int]) -> int:
        indices = self._indices(after)
        return self._append((TIMER, 0, 0, 0, NO_EFFECT, 0, indices, (), (), NO_EFFECT, ()))

    def _append(self, row: Row) -> int:
        self._rows.append(row)
        return self._base + len(self._rows) - 1

    def _add(self, value: _Value) -> int:
        number = self._num_values
        self._num_values = number + 1
        self._values[number] = value
        return number

    def _indices(self, after: Sequence[int]) -> tuple[int, ...]:
        """Where tasks are in the current piece."""
        base = self._base
        if not base:
            return tuple(after)
        return tuple([task - base if task >= base else self._index_of(task) for task in after])

    def _index_of(self, task: int) -> int:
        """Of a task of an earlier piece: one of this piece that ends with it."""
        index = self._earlier.get(task)
        if index is None:
            index = self._earlier[task] = len(self._rows)
            task_id = self._task_id(task)
            self._append((EARLIER, 0, task_id, 0, NO_EFFECT, 0, (), (), (), NO_EFFECT, ()))
        return index

    def _task_id(self, task: int) -> int:
        piece = bisect_right(self._starts, task) - 1
        first_id, offsets = self._pieces[piece]
        return first_id + offsets[task - self._starts[piece]]

    # -- time ------------------------------------------------------------------------------------

    def hand_over(self) -> None:
        """Submit what has been issued; nothing happens before somebody waits."""
        if not self._rows:
            return
        graph = TaskGraph()
        graph.rows.extend(self._rows)
        graph.size = len(self._rows)
        first_id = self._hub.submit(graph)
        self._starts.append(self._base)
        self._pieces.append((first_id, self._engine.compiled(graph).offsets))
        self._base += graph.size
        self._rows = []
        self._earlier = {}

    def wait(self, task: int, what: str) -> None:
        """Suspend the running program until a task has ended; effects are applied by then."""
        self.hand_over()
        self._hub.wait(self._task_id(task), what)
