"""Programs that wait in the middle of plain Python: greenlets over one engine."""

import atexit
from collections import deque
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from functools import lru_cache
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from greenlet import getcurrent, greenlet

from tilewright.engine.core import NO_WAKE, OWNER_SHIFT
from tilewright.engine.deadlock import WaitingProgram, What, name_programs, waiting_program
from tilewright.engine.engine import MAX_OWNER, Engine
from tilewright.engine.fault import first_line
from tilewright.engine.graph import TaskGraph
from tilewright.engine.hub_program import Program, append, chain
from tilewright.engine.issuer import Issuer
from tilewright.engine.service import ProgramGreenlet
from tilewright.engine.spec import check_integer
from tilewright.errors import DeadlockError, EngineError, LimitError
from tilewright.units import MAX_PS

MAX_KEPT_GRAPHS = 1024
WAITS = object()  # what a switch to the hub hands over, unless the program has ended
CLOSED = "closed"  # why programs end that nobody lets go on


class Hub:
    """Starts programs, lets the engine run while all of them wait, and resumes those it wakes.

    Programs run one at a time, each on its greenlet. A program that waits lets time pass itself
    and then switches to the one that wakes first; starts, ends and errors are left to *home*, the
    greenlet that called ``run``. No frame of the core is on a stack when it is switched. Effects
    are applied before any program resumes.

    A program that has begun and waits keeps itself, the hub and the engine alive: Python's garbage
    collector does not see what the stack of a greenlet refers to. Where ``run(until=...)`` leaves
    programs behind, ``close`` the hub, or use it in a ``with`` statement.

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
        *,
        first_number: int = 0,
    ) -> None:
        """Build a hub whose programs are numbered from ``first_number`` on."""
        if not isinstance(engine, Engine):
            raise EngineError("hub", repr(engine), "an Engine", "pass what build_engine returned")
        self._engine = engine
        self._core = engine.core
        self._guard = engine.guard
        self._perform_rows = engine.core.perform_rows
        self._perform_compiled = engine.core.perform
        self._apply_effects = apply_effects
        self._next_number = first_number
        self._num_programs = 0  # that were ever spawned
        self._live: dict[int, Program] = {}  # not ended yet
        self._due: deque[Program] = deque()  # new or woken, for home to resume
        self._waiting: dict[int, Program] = {}  # by task: the first of those that wait for it
        self._current: Program | None = None
        self._switch_home: Callable[..., Any] | None = None  # there while run() runs
        self._failure: BaseException | None = None  # for home to raise
        self._end_reason: str | None = None
        self.polls: dict[int, Any] = {}  # by program: what it looks at again and again
        self._timer = lru_cache(MAX_KEPT_GRAPHS)(_timer_graph)
        self.observe: Callable[[], None] | None = None  # called often, to look and change nothing
        self.failed: Program | None = None  # whose own error ended the run

    def __repr__(self) -> str:
        live = f"{len(self._live)} of {self._num_programs} programs"
        return f"<Hub at {self.now_ps} ps, {live} not done>"

    @property
    def now_ps(self) -> int:
        return self._engine.now_ps

    def spawn(self, function: Callable[..., Any], *args: Any, name: str = "") -> Program:
        """A program that ``run`` starts; inside a run, as soon as the running program waits."""
        self._check_usable()
        if not callable(function):
            fix = "pass the function, then its arguments"
            raise EngineError("hub.spawn", repr(function), "a function", fix)
        number = self._next_number
        if number > MAX_OWNER or number in self._live:
            number = self._free_number()
        body = ProgramGreenlet(function)
        program = Program(number, name or f"program {number}", body, args, body.switch)
        self._next_number = number + 1
        self._num_programs += 1
        self._live[number] = program
        self._due.append(program)
        return program

    def _free_number(self) -> int:
        """Return the next number that no program has; after the greatest comes 0."""
        number = self._next_number
        if len(self._live) > MAX_OWNER:
            found, fix = f"{len(self._live)} programs that have not ended", "let some of them end"
            raise EngineError("hub", found, f"at most {MAX_OWNER + 1}", fix)
        while number > MAX_OWNER or number in self._live:
            number = 0 if number > MAX_OWNER else number + 1
        return number

    @property
    def next_number(self) -> int:
        """The number of the next program that is spawned."""
        return self._next_number

    @property
    def has_programs(self) -> bool:
        """Whether a program has not ended."""
        return bool(self._live)

    @property
    def has_ended(self) -> bool:
        """Whether an error or ``close`` has ended all programs."""
        return self._end_reason is not None

    @property
    def is_inside(self) -> bool:
        """Whether the caller is a program of this hub, which may wait."""
        return self._current is not None and self._current._body is getcurrent()

    @property
    def running(self) -> Program:
        """The program that calls."""
        if self._current is None:
            raise self._outside("running")
        return self._current

    def run(self, until: Program | None = None) -> None:
        """Run all programs to their end, or until this one has ended; an error ends all of them.

        Work that no program waits for is left to the engine. Programs that have not ended go on
        in the next run.
        """
        self._check_usable()
        if self._switch_home is not None:
            fix = "spawn a program instead"
            raise EngineError("hub", "a run inside a run", "one run at a time", fix)
        if self._guard.has_hub:
            fix = "let one hub run all programs"
            raise EngineError("hub", "a run of another hub", "one running hub an engine", fix)
        home = getcurrent()
        for program in self._live.values():
            program._body.parent = home  # where its end and its errors go
        self._switch_home = home.switch
        self._guard.has_hub = True
        try:
            self._run(home, until)
            self._engine.check_if_drained()
        except BaseException as error:
            self.failed, self._current = self._current, None
            self._end_reason = first_line(error)
            self._end_all(error)
            raise
        finally:
            self._guard.has_hub = False
            self._current = self._switch_home = None
            if self._live:
                _UNFINISHED.add(self)

    def close(self) -> None:
        """End all programs that have not ended, each where it waits; the hub runs no more.

        Only the thread that has run the hub may close it. Raises the first error of a program's
        clean-up, once all have ended. A second call does nothing.
        """
        if self._switch_home is not None:
            fix = "close it when run has returned"
            raise EngineError("hub.close", "a call inside a run", "a hub that does not run", fix)
        for program in self._live.values():
            try:
                program._body.parent = getcurrent()
            except ValueError:
                expected, fix = "the thread that has run the hub", "close it there"
                raise EngineError("hub.close", "another thread", expected, fix) from None
            program._body.is_abandoned = True
        if self._end_reason is None:
            self._end_reason = CLOSED
        self._end_all(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- for programs ----------------------------------------------------------------------------

    @property
    def current(self) -> Program:
        """The program that asks."""
        if self._current is None:
            raise self._outside("current")
        return self._current

    def submit(self, graph: TaskGraph, after: Sequence[int] = ()) -> int:
        """Submit work of the running program; returns the id of the first task."""
        program = self._current
        if program is None:
            raise self._outside("submit")
        return self._engine.submit(graph, owner=program.number, after=after)

    def submit_piece(self, issuer: Issuer) -> None:
        """Submit what an issuer of the running program has issued since the last time."""
        program = self._current
        if program is None:
            raise self._outside("submit_piece")
        self._engine.submit_piece(issuer, owner=program.number)

    def perform(self, graph: TaskGraph, what: What = "", after: Sequence[int] = ()) -> None:
        """Submit work of the running program and wait for its last task."""
        program = self._current
        if program is None or program._body is not getcurrent():
            raise self._outside("perform")
        program._what = what
        if self._due or after or not self._guard.is_plain:
            task_id = self._engine.submit_watched(graph, owner=program.number, after=after)
            self._wait_for(task_id, program)
            return
        is_new = type(graph) is TaskGraph and graph._core is None and graph.size
        compiled = None if is_new else self._engine.compiled(graph)
        try:
            # one call submits and runs until a program wakes: this decides the speed of loops
            if compiled is None:
                wake = self._perform_rows(graph.rows, program.number)
                graph._core = self._core
            else:
                wake = self._perform_compiled(compiled, program.number)
        except BaseException as error:  # noqa: BLE001  # raised here or by home
            raise self._failed(error, graph) from None
        if wake < 0 and self._apply_effects is None:
            self._current = following = self._live[~wake]
            if following is not program:
                following._resume()
            return
        self._collect(wake)
        self._go_home()

    def wait(self, task_id: int, what: What = "") -> None:
        """Until the task is complete; ``what`` says in words what that means.

        A Reason also names the programs that have to do something first, so that the report of a
        deadlock finds the circle in which programs wait for each other.
        """
        program = self._current
        if program is None or program._body is not getcurrent():
            raise self._outside("wait")
        if self._engine.watch(task_id):
            program._what = what
            self._wait_for(task_id, program)

    def is_complete(self, task_id: int) -> bool:
        """Whether a task that was submitted has ended by now."""
        return self._core.is_complete(task_id)

    def sleep(self, time_ps: int) -> None:
        """Let simulated time pass; 0 lets what is due at this instant happen first."""
        check_integer("sleep", "time_ps", time_ps, 0, MAX_PS)
        self.perform(self._timer(time_ps), "sleep")

    def wait_signal(self, signal: int, value: int) -> None:
        """Until the signal has at least this value."""
        check_integer("wait_signal", "value", value, 0, MAX_PS)
        if self._engine.signal_value(signal) < value:
            self.perform(self._timer(0, signal, value))  # a report names the signal

    def has_nothing_under_way(self, number: int) -> bool:
        """Whether all that a program has submitted is complete."""
        return all(row[0] >> OWNER_SHIFT != number for row in self._core.waiting_tasks())

    def is_up_to(self, numbers: Container[int]) -> bool:
        """Whether nothing can happen any more unless one of these programs does it."""
        if any(program.number not in numbers for program in self._due):
            return False
        tasks = self._awaited_tasks()
        for number in self._live:
            if number in numbers:
                continue
            task_id = tasks[number] if number in tasks else self._core.performed_task(number)
            if self._core.is_complete(task_id):
                return False  # it goes on at this instant
        for task_id, packets_left, afters, waits, _ in self._core.waiting_tasks():
            is_blocked = not packets_left and (afters or waits)
            if not is_blocked and task_id >> OWNER_SHIFT not in numbers:
                return False
        return True

    # -- the loop --------------------------------------------------------------------------------

    def _run(self, home: greenlet, until: Program | None) -> None:
        while self._live and (until is None or not until.is_done):
            if self._due:
                self._resume(self._due.popleft(), home)
            else:
                self._advance()
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure

    def _resume(self, program: Program, home: greenlet) -> None:
        """Until a program ends or leaves the next step to home; it need not be the same one."""
        program._body.parent = home
        args, program._args = program._args, ()
        self._current = program
        result = program._resume(*args)
        if result is not WAITS and self._current is not None:
            number = self._current.number
            self._current._finish(result)
            del self._live[number]
            self.polls.pop(number, None)
            self._core.end_owner(number)
        self._current = None

    def _advance(self) -> None:
        try:
            wake = self._engine.next_wake()
        except BaseException as error:  # noqa: BLE001  # raised by home
            self._note_failure(error)
        else:
            self._collect(wake)

    def _collect(self, wake: int) -> None:
        """Put the programs that wake on the list, once effects are applied."""
        self._current = None
        try:
            if self.observe is not None:
                self.observe()
            if wake == NO_WAKE:
                self._engine.settle()
                self._refuse_deprived()
            if self._apply_effects is not None and (effects := self._engine.take_effects()):
                self._apply_effects(effects)
        except BaseException as error:  # noqa: BLE001  # raised by home
            self._note_failure(error)
        else:
            first = self._live[~wake] if wake < 0 else self._waiting.pop(wake, None)
            for program in list(chain(first)):
                program._next = None
                self._due.append(program)

    def _wait_for(self, task_id: int, program: Program) -> None:
        first = self._waiting.setdefault(task_id, program)
        if first is not program:
            append(first, program)
        self._go_home()

    def _go_home(self) -> None:
        self._current = None
        self._switch_home(WAITS)  # type: ignore[misc]  # there while a program runs

    def _failed(self, error: BaseException, graph: TaskGraph) -> BaseException:
        """Of a graph that was not submitted, the program's error; else the run's, which ends."""
        if self._core.was_submitted:
            self._note_failure(self._engine.error_of_run(error))
            self._go_home()
        return self._engine.error_of_submit(error, graph)

    def _note_failure(self, error: BaseException) -> None:
        if isinstance(error, DeadlockError):
            error = self._engine.deadlock_error(self._waiting_programs())
        elif isinstance(error, LimitError):
            error = name_programs(error, self._waiting_programs())
        self._failure = error

    def _end_all(self, error: BaseException | None) -> None:
        """Unwind programs that wait; what their clean-up raises is noted beside the first error."""
        is_first = error is None
        for program in self._live.values():
            program.end_reason = self._end_reason
            try:
                program._body.throw(program.ended_by)
            except program.ended_by:
                continue  # as it was told
            except BaseException as second:  # noqa: BLE001  # it is told below the first
                text = f"{type(second).__name__}: {second}"
                error = second if error is None else error
                error.add_note(f"while program {program.name!r} ended: {text}")
        self._live.clear()
        self._due.clear()
        self._waiting.clear()
        if is_first and error is not None:
            raise error

    # -- words -----------------------------------------------------------------------------------

    def _awaited_tasks(self) -> dict[int, int]:
        """Return the tasks that programs wait for, by program, but for those that perform."""
        return {
            program.number: task_id
            for task_id, first in self._waiting.items()
            for program in chain(first)
        }

    def _waiting_programs(self) -> list[WaitingProgram]:
        tasks = self._awaited_tasks()
        return [
            waiting_program(
                number,
                program.name,
                tasks[number] if number in tasks else self._core.performed_task(number),
                program._what,
            )
            for number, program in self._live.items()
        ]

    def _check_usable(self) -> None:
        if self._end_reason is not None:
            found = f"one whose run ended with {self._end_reason}"
            if self._end_reason == CLOSED:
                found = "one that is closed"
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

    def _refuse_deprived(self) -> None:
        names = ", ".join(repr(program.name) for program in self._live.values())
        found = f"no wake-ups left for {names}"
        fix = "let no program call advance"
        raise EngineError("hub", found, "the hub alone to call advance", fix)


_UNFINISHED: WeakSet[Hub] = WeakSet()  # hubs that programs waited in when a run ended


@atexit.register
def _close_unfinished() -> None:
    """End programs that still wait when the process ends, while all modules are there."""
    with ExitStack() as stack:
        for hub in _UNFINISHED:
            stack.callback(hub.close)


def _timer_graph(delay_ps: int, signal: int | None = None, value: int = 0) -> TaskGraph:
    graph = TaskGraph()
    graph.timer(delay_ps, waits=() if signal is None else ((signal, value),))
    return graph
