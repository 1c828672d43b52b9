"""What programs say, by the number of the command: op, line, and the loads it uses.

A program that is watched issues through a stand-in for its issuer, which notes and passes on.
"""

import contextlib
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tilewright.engine.core import NO_VALUE, IssuedAccess, IssuedStep
from tilewright.engine.issuer import Issuer
from tilewright.executor.program import Program
from tilewright.language.source import SourceLine, is_ours, line_text

Message = tuple[int, int]
"""The signal of arrivals of its ring, and the value at which its first fragment has arrived."""

PASSED_OVER = (__file__, contextlib.__file__)  # between the author's line and the language


class CommandNote(NamedTuple):
    """One command; ``sources`` are the commands that loaded or received what it works on."""

    what: str
    line: SourceLine
    program: str  # its ids
    sources: tuple[int, ...] = ()
    message: Message | None = None  # that it sends or receives

    @property
    def title(self) -> str:
        """The op and where it is said, short enough for a slice."""
        place, _, _ = self.place.partition(" in ")
        return f"{self.what} {Path(place).name}"

    @property
    def place(self) -> str:
        return line_text(self.line)


@dataclass(slots=True)
class _Pages:
    """What is known of one owner: its commands in order, and which of them brought a value."""

    notes: list[CommandNote | None] = field(default_factory=list)
    brought: dict[int, int] = field(default_factory=dict)  # by value


class CommandBook:
    """Notes of all owners, or of some, and at most ``limit`` of them."""

    def __init__(self, *, limit: int, owners: Container[int] | None = None) -> None:
        self._pages: dict[int, _Pages] = {}
        self._room = limit
        self._owners = owners

    def is_watching(self, owner: int) -> bool:
        return self._owners is None or owner in self._owners

    def watch(self, program: Program, issuer: Issuer) -> Issuer:
        """The issuer that a program uses instead of its own."""
        owner = program.run.hub.running.number
        if not self.is_watching(owner):
            return issuer
        pages = self._pages.setdefault(owner, _Pages())
        watched: Any = _WatchedIssuer(self, pages, program, issuer)
        return watched  # type: ignore[no-any-return]

    def note_of(self, owner: int, command: int) -> CommandNote | None:
        pages = self._pages.get(owner)
        return pages.notes[command] if pages and command < len(pages.notes) else None

    def take_room(self) -> bool:
        self._room -= 1
        return self._room >= 0


class _WatchedIssuer:
    """Everything that an issuer does, with a note for each command."""

    def __init__(self, book: CommandBook, pages: _Pages, program: Program, issuer: Issuer) -> None:
        self._book = book
        self._pages = pages
        self._program = program
        self._issuer = issuer
        self._ops: dict[int, str] = {}  # by plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._issuer, name)

    def compute(self, plan: int, operands: list[int]) -> int:
        number = self._issuer.compute(plan, operands)
        self._note(self._op(plan), operands)
        return number

    def update(self, plan: int, value: int, operands: list[tuple[int, int]]) -> int:
        number = self._issuer.update(plan, value, operands)
        self._note(self._op(plan), [operand for operand, _ in operands])
        return number

    def load(
        self, num_bytes: int, accesses: list[IssuedAccess], after: list[int], served: int
    ) -> int:
        number = self._issuer.load(num_bytes, accesses, after, served)
        self._note_brought(number, "load")
        return number

    def store(
        self,
        value: int,
        num_bytes: int,
        accesses: list[IssuedAccess],
        after: list[int],
        served: int,
    ) -> int:
        task = self._issuer.store(value, num_bytes, accesses, after, served)
        self._note("store", (value,))
        return task

    def send(self, value: int, num_bytes: int, steps: list[IssuedStep]) -> int:
        task = self._issuer.send(value, num_bytes, steps)
        self._note("send", (value,), _message_sent(steps))
        return task

    def receive(self, num_bytes: int, steps: list[IssuedStep]) -> int:
        number = self._issuer.receive(num_bytes, steps)
        ((_, _, _, _, _, (message,), *_), *_) = steps  # it waits for its first fragment
        self._note_brought(number, "recv", message)
        return number

    def park(self, value: int) -> int:
        task = self._issuer.park(value)
        self._note("park", (value,))
        return task

    def open_composite(self) -> None:
        self._issuer.open_composite()
        self._note("composite", ())

    def release(self, value: int) -> None:
        self._pages.brought.pop(value, None)
        self._issuer.release(value)

    def finish(self) -> None:
        self._pages.brought.clear()
        self._issuer.finish()

    def _op(self, plan: int) -> str:
        if plan not in self._ops:
            self._ops = {found.number: key[0] for key, found in self._program.run.plans.items()}
        return self._ops.get(plan, "compute")

    def _note_brought(self, number: int, what: str, message: Message | None = None) -> None:
        if self._note(what, (), message):
            self._pages.brought[number] = self._issuer.num_commands - 1

    def _note(self, what: str, operands: Sequence[int], message: Message | None = None) -> bool:
        """Whether it is a command of its own: parts of a composite only add to what that uses."""
        notes, number = self._pages.notes, self._issuer.num_commands - 1
        brought = self._pages.brought
        used = (brought[value] for value in operands if value != NO_VALUE and value in brought)
        sources = tuple(dict.fromkeys(used))
        if number < len(notes):
            whole = notes[number]
            if whole is not None and not set(sources) <= set(whole.sources):
                notes[number] = whole._replace(sources=(*whole.sources, *sources))
            return False
        if not self._book.take_room():
            return False
        notes.extend([None] * (number - len(notes)))
        ids = ", ".join(map(str, self._program.ids))
        notes.append(CommandNote(what, _author_line(), ids, sources, message))
        return True


def _message_sent(steps: Sequence[IssuedStep]) -> Message:
    """Of the first fragment: it waits for room at its place, goes, and raises its arrival."""
    control, _, arriving, *_ = steps
    _, _, _, _, _, ((_, place), *_), *_ = control
    _, _, _, _, _, _, ((arrived, _),), *_ = arriving
    return arrived, place


def _author_line() -> SourceLine:
    """The innermost line that is neither the language's nor this file's."""
    frame: FrameType = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename in PASSED_OVER or is_ours(frame.f_code)
    ):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
