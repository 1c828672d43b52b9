"""Programs that wait in the middle of plain Python: greenlets over one engine."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from greenlet import getcurrent, greenlet

from tilewright.engine.deadlock import WaitingProgram
from tilewright.engine.engine import MAX_OWNER, Engine
from tilewright.engine.graph import TaskGraph
from tilewright.engine.message import first_line
from tilewright.engine.service import ProgramGreenlet
from tilewright.engine.spec import check_integer
from tilewright.errors import DeadlockError, EngineError
from tilewright.units import MAX_PS

__all__ = ("Hub", "Program")

MAX_KEPT_GRAPHS = 1024
WAITS = object()  # what a switch to the hub hands over, unless the program has ended


class Program:
    """A function that runs in simulated time; ``number`` owns the tasks that it submits."""

    __slots__ = (
        "_body",
        "_last",
        "_next",
        "_resume",
        "_what",
        "is_done",
        "name",
        "number",
        "result",
    )

    def __init__(self, number: int, name: str, body: greenlet) -> None:
        self.number = number
        self.name = name
        self.is_done = False
        self.result: Any = None  # what the function returned
        self._body = body
        self._resume: Callable[..., Any] = body.switch
        self._what = ""  # that it waits for
        self._next: Program | None = None  # the next one that waits for the same task
        self._last: Program  # the last of them, known to the first if there is a next

    def __repr__(self) -> str:
        return f"<Program {self.number} {self.name!r}, {'done' if self.is_done else 'not done'}>"


class Hub:
    """Starts programs, lets the engine run while all of them wait, and resumes those it wakes.

    Programs run one at a time, each on its greenlet; the hub alone calls ``advance``, on the one
    that called ``run``. So no frame of the core is on a stack when it is switched. Effects are
    applied before any program resumes.

    >>> from tilewright.engine import build_engine
    >>> hub = Hub(build_engine())
    >>> def program() -> int:
    ...     hub.sleep(500)
    ...     return hub.now_ps
    >>> sleeper = hub.spawn(program, name="sleeper")
    >>> hub.run()
    >>> sleeper.result
    500
    """

    def __init__(
        self,
        engine: Engine,
        apply_effects: Callable[[list[tuple[int, int]]], None] | None = None,
    ) -> None:
        if not isinstance(engine, Engine):
            raise EngineError("hub", repr(engine), "an Engine", "pass what build_engine returned")
        self._engine = engine
        self._apply_effects = apply_effects
        self._watch = engine.watch
        self._engine_submit = engine.submit
        self._submit_watched = engine.submit_watched
        self._num_programs = 0
        self._new: deque[tuple[Program, tuple[Any, ...]]] = deque()  # not started yet
        self._live: dict[int, Program] = {}  # not ended yet
        self._waiting: dict[int, Program] = {}  # by task: the first of those that wait for it
        self._current: Program | None = None
        self._switch_home: Callable[..., Any] | None = None  # there while run() runs
        self._end_reason: str | None = None
        self._timer = lru_cache(MAX_KEPT_GRAPHS)(_timer_graph)

    def __repr__(self) -> str:
        live, total = len(self._live), self._num_programs
        return f"<Hub at {self.now_ps} ps, {live} of {total} programs not done>"

    @property
    def now_ps(self) -> int:
        return self._engine.now_ps

    def spawn(self, function: Callable[..., Any], *args: Any, name: str = "") -> Program:
        """A program that ``run`` starts; inside a run, as soon as the running program waits."""
        self._check_usable()
        if not callable(function):
            fix = "pass the function, then its arguments"
            raise EngineError("hub.spawn", repr(function), "a function", fix)
        number = self._num_programs
        check_integer("hub", "program number", number, 0, MAX_OWNER)
        program = Program(number, name or f"program {number}", ProgramGreenlet(function))
        self._num_programs += 1
        self._live[number] = program
        self._new.append((program, args))
        return program

    def run(self) -> None:
        """Run all programs to their end; an error in one of them ends the others.

        Work that no program waits for is left to the engine.
        """
        self._check_usable()
        if self._switch_home is not None:
            fix = "spawn a program instead"
            raise EngineError("hub", "a run inside a run", "one run at a time", fix)
        home = getcurrent()
        self._switch_home = home.switch
        try:
            self._run(home)
            self._engine.check_if_drained()
        except BaseException as error:
            self._current = None
            self._end_reason = first_line(error)
            self._end_all(error)
            raise
        finally:
            self._current = self._switch_home = None

    # -- for programs ----------------------------------------------------------------------------

    def submit(self, graph: TaskGraph, after: Sequence[int] = ()) -> int:
        """Submit work of the running program; returns the id of the first task."""
        program = self._current
        if program is None:
            raise self._outside("submit")
        return self._engine_submit(graph, owner=program.number, after=after)

    def perform(self, graph: TaskGraph, what: str = "", after: Sequence[int] = ()) -> None:
        """Submit work of the running program and wait for its last task."""
        program = self._current
        if program is None or program._body is not getcurrent():
            raise self._outside("perform")
        task_id = self._submit_watched(graph, owner=program.number, after=after)
        program._what = what
        self._waiting[task_id] = program
        self._switch_home(WAITS)  # type: ignore[misc]  # there while a program runs

    def wait(self, task_id: int, what: str = "") -> None:
        """Until the task is complete; ``what`` says in words what that means."""
        program = self._current
        if program is None or program._body is not getcurrent():
            raise self._outside("wait")
        if not self._watch(task_id):
            return
        program._what = what
        first = self._waiting.setdefault(task_id, program)
        if first is not program:
            _append(first, program)
        self._switch_home(WAITS)  # type: ignore[misc]  # there while a program runs

    def sleep(self, time_ps: int) -> None:
        """Let simulated time pass; 0 lets what is due at this instant happen first."""
        check_integer("sleep", "time_ps", time_ps, 0, MAX_PS)
        self.perform(self._timer(time_ps), "sleep")

    def wait_signal(self, signal: int, value: int) -> None:
        """Until the signal has at least this value."""
        check_integer("wait_signal", "value", value, 0, MAX_PS)
        if self._engine.signal_value(signal) < value:
            self.perform(self._timer(0, signal, value))  # a report names the signal

    # -- the loop --------------------------------------------------------------------------------

    def _run(self, home: greenlet) -> None:
        advance, take_waiting = self._engine.advance, self._waiting.pop
        apply_effects, take_effects = self._apply_effects, self._engine.take_effects
        while self._live:
            if self._new:
                self._start_new(home)
                continue
            try:
                wakes = advance()
            except DeadlockError:
                raise self._engine.deadlock_error(self._waiting_programs()) from None
            if not wakes:
                raise self._deprived()
            if apply_effects is not None:
                effects = take_effects()
                if effects:
                    apply_effects(effects)
            for task_id in wakes:
                self._current = program = take_waiting(task_id, None)
                while program is not None:
                    following = program._next
                    if following is not None:
                        program._next = None
                    if (result := program._resume()) is not WAITS:
                        self._end(program, result)
                    self._current = program = following

    def _start_new(self, home: greenlet) -> None:
        """In the order of numbers; a program may spawn others, which start after it."""
        while self._new:
            program, args = self._new.popleft()
            program._body.parent = home  # where its end and its errors go
            self._current = program
            if (result := program._resume(*args)) is not WAITS:
                self._end(program, result)
        self._current = None

    def _end(self, program: Program, result: object) -> None:
        program.result = result
        program.is_done = True
        del self._live[program.number]

    def _end_all(self, error: BaseException) -> None:
        """Unwind programs that wait; what their clean-up raises is noted beside the first error."""
        for program in self._live.values():
            try:
                program._body.throw()
            except BaseException as second:  # noqa: BLE001  # it is told below the first
                text = f"{type(second).__name__}: {second}"
                error.add_note(f"while program {program.name!r} ended: {text}")

    # -- words -----------------------------------------------------------------------------------

    def _waiting_programs(self) -> list[WaitingProgram]:
        return [
            WaitingProgram(program.number, program.name, task_id, program._what)
            for task_id, first in self._waiting.items()
            for program in _chain(first)
        ]

    def _check_usable(self) -> None:
        if self._end_reason is not None:
            found = f"one whose run ended with {self._end_reason}"
            raise EngineError("hub", found, "one that can go on", "build a new engine and hub")

    def _outside(self, call: str) -> EngineError:
        if self._end_reason is not None:
            found = "in a run that is ending"
        elif self._switch_home is None:
            found = "outside of any program"
        elif self._current is None:
            found = "inside a Python server or an effect"
        else:
            found = f"on a greenlet that program {self._current.name!r} made"
        fix = "spawn a program that does it"
        return EngineError(f"hub.{call}", f"a call {found}", "a call from a program", fix)

    def _deprived(self) -> EngineError:
        names = ", ".join(repr(program.name) for program in self._live.values())
        found = f"no wake-ups left for {names}"
        fix = "let no program call advance"
        return EngineError("hub", found, "the hub alone to call advance", fix)


def _append(first: Program, program: Program) -> None:
    before = first if first._next is None else first._last
    before._next = first._last = program


def _chain(first: Program) -> Iterator[Program]:
    program: Program | None = first
    while program is not None:
        yield program
        program = program._next


def _timer_graph(delay_ps: int, signal: int | None = None, value: int = 0) -> TaskGraph:
    graph = TaskGraph()
    graph.timer(delay_ps, waits=() if signal is None else ((signal, value),))
    return graph
