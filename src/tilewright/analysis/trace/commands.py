"""What programs say, by the number of the command: op, line, and the loads it uses.

A program that is watched issues through a stand-in for its issuer, which notes and passes on.
"""

import contextlib
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tilewright.engine.core import NO_VALUE, IssuedStep
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


Hook = Callable[[str, tuple[Any, ...], Any], None]
"""Hears of a call of an issuer after it: the method, its arguments and its result."""

_HEARD = frozenset({
    "compute", "finish", "load", "open_composite", "park", "receive", "release", "send", "store",
    "update",
})  # fmt: skip


class InstrumentedIssuer:
    """Everything that an issuer does, with a hook that hears of each command."""

    def __init__(self, issuer: Issuer, hook: Hook) -> None:
        self._issuer = issuer
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._issuer, name)
        if name not in _HEARD:
            return called

        def heard(*arguments: Any) -> Any:
            result = called(*arguments)
            self._hook(name, arguments, result)
            return result

        setattr(self, name, heard)  # found at once from now on
        return heard


class CommandBook:
    """Notes of all owners, or of some, and at most ``limit`` of them."""

    def __init__(self, *, limit: int, owners: Container[int] | None = None) -> None:
        self.room = limit
        self._owners = owners
        self._pages: dict[int, _Pages] = {}

    def is_watching(self, owner: int) -> bool:
        return self._owners is None or owner in self._owners

    def watch(self, program: Program, issuer: Issuer) -> Issuer:
        """The issuer that a program uses instead of its own."""
        owner = program.run.hub.running.number
        if not self.is_watching(owner):
            return issuer
        pages = _Pages(self, program, issuer)
        if owner in self._pages:  # of its earlier programs
            pages = replace(self._pages[owner], program=program, issuer=issuer, ops={})
        self._pages[owner] = pages
        watched: Any = InstrumentedIssuer(issuer, pages.hear)
        return watched  # type: ignore[no-any-return]

    def note_of(self, owner: int, command: int) -> CommandNote | None:
        pages = self._pages.get(owner)
        return pages.notes[command] if pages and command < len(pages.notes) else None


@dataclass(slots=True)
class _Pages:
    """What is known of one owner: its commands in order, and which of them brought a value."""

    book: CommandBook
    program: Program
    issuer: Issuer
    notes: list[CommandNote | None] = field(default_factory=list)
    brought: dict[int, int] = field(default_factory=dict)  # by value
    ops: dict[int, str] = field(default_factory=dict)  # by plan

    def hear(self, method: str, arguments: tuple[Any, ...], result: Any) -> None:
        """Note a command; parts of a composite only add to what that uses."""
        match method, arguments:
            case "compute", (plan, operands):
                self._note(self._op(plan), operands)
            case "update", (plan, _, operands):
                self._note(self._op(plan), [operand for operand, _ in operands])
            case "load", _:
                self._note_brought(result, "load")
            case "receive", (_, steps):
                ((_, _, _, _, _, (message,), *_), *_) = steps  # it waits for its first fragment
                self._note_brought(result, "recv", message)
            case "send", (value, _, steps):
                self._note("send", (value,), _message_sent(steps))
            case (("store" | "park"), (value, *_)):
                self._note(method, (value,))
            case "open_composite", _:
                self._note("composite", ())
            case "release", (value,):
                self.brought.pop(value, None)
            case "finish", _:
                self.brought.clear()

    def _op(self, plan: int) -> str:
        if plan not in self.ops:
            self.ops = {found.number: key[0] for key, found in self.program.run.plans.items()}
        return self.ops.get(plan, "compute")

    def _note_brought(self, number: int, what: str, message: Message | None = None) -> None:
        if self._note(what, (), message):
            self.brought[number] = self.issuer.num_commands - 1

    def _note(self, what: str, operands: Sequence[int], message: Message | None = None) -> bool:
        """Return whether it is a command of its own, and there was room for it."""
        notes, number, brought = self.notes, self.issuer.num_commands - 1, self.brought
        used = (brought[value] for value in operands if value != NO_VALUE and value in brought)
        sources = tuple(dict.fromkeys(used))
        if number < len(notes):
            whole = notes[number]
            if whole is not None and not set(sources) <= set(whole.sources):
                notes[number] = whole._replace(sources=(*whole.sources, *sources))
            return False
        self.book.room -= 1
        if self.book.room < 0:
            return False
        notes.extend([None] * (number - len(notes)))
        ids = ", ".join(map(str, self.program.ids))
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
