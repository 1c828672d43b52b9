"""A program of a hub: what it runs, what it waits for, and how it ended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from greenlet import GreenletExit

from tilewright.engine.deadlock import What
from tilewright.engine.service import ProgramGreenlet


@dataclass(eq=False, slots=True, repr=False)
class Program:
    """A function that runs in simulated time; ``number`` owns the tasks that it submits."""

    number: int
    name: str
    _body: ProgramGreenlet
    _args: tuple[Any, ...]  # for its start
    _resume: Callable[..., Any]
    is_done: bool = False
    result: Any = None  # what the function returned
    end_reason: str | None = None  # the error that ended it, if its run ended before it
    ended_by: type[BaseException] = GreenletExit  # raised in it if its run ends before it
    _what: What = ""  # that it waits for
    _next: "Program | None" = None  # the next one that waits for the same task
    _last: "Program | None" = None  # the last of them, known to the first if there is a next

    def __repr__(self) -> str:
        return f"<Program {self.number} {self.name!r}, {'done' if self.is_done else 'not done'}>"

    def _finish(self, result: Any) -> None:
        """Note the end of the function; who keeps the program keeps nothing else."""
        self.result = result
        self.is_done = True
        self._what = ""
        del self._body, self._resume


def append(first: Program, program: Program) -> None:
    """Let a program wait behind the first one that waits for the same task."""
    before = first._last if first._next and first._last else first
    before._next = first._last = program


def chain(first: Program | None) -> Iterator[Program]:
    """Yield all programs that wait for the same task, from the first on."""
    program = first
    while program is not None:
        yield program
        program = program._next
