"""Kernels that hypothesis writes, a line for each command, and which of their lines race.

The oracle reads the same commands and follows the rules of the language one by one: it knows
nothing of tasks, masks or bytes in memory.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tilewright import language as tl

__all__ = ("NUM_ELEMENTS", "NUM_PROGRAMS", "Command", "build_kernel", "commands", "racing_lines")

NUM_PROGRAMS = 3
PROGRAMS = range(NUM_PROGRAMS)
BLOCK = 8
PART = 2 * BLOCK  # elements that a program calls its own
NUM_ELEMENTS = NUM_PROGRAMS * PART
FIRST_LINE = 3  # of the commands in the text of a kernel


class Command(NamedTuple):
    """One line of one program; the order of all lines is one in which they can happen."""

    program: int
    what: str  # load, store, need, send or receive
    start: int = 0  # the element where an access begins
    value: int | None = None  # the load of the same program whose value is used, by its line
    peer: int = 0  # of a message


@dataclass
class _Draft:
    """What has been said so far."""

    lines: list[Command] = field(default_factory=list)
    loads: dict[int, list[int]] = field(default_factory=lambda: {each: [] for each in PROGRAMS})
    mail: Counter[tuple[int, int]] = field(default_factory=Counter)  # messages under way

    def say(self, line: Command) -> None:
        if line.what == "load":
            self.loads[line.program].append(len(self.lines))
        elif line.what == "send":
            self.mail[line.program, line.peer] += 1
        elif line.what == "receive":
            self.mail[line.peer, line.program] -= 1
        self.lines.append(line)


@st.composite
def commands(draw: st.DrawFn) -> list[Command]:
    """Programs mostly stay in their own part, and hand elements over by messages."""
    draft = _Draft()
    for _ in range(draw(st.integers(2, 7))):
        program = draw(st.sampled_from(PROGRAMS))
        peer = (program + draw(st.sampled_from((1, 2)))) % NUM_PROGRAMS
        if draw(st.booleans()):
            _hand_over(draw, draft, program, peer)
        else:
            _say_any(draw, draft, program, peer)
    for (sender, receiver), count in list(draft.mail.items()):
        for _ in range(count):  # what nobody receives is an error
            draft.say(Command(receiver, "receive", peer=sender))
    return draft.lines


def _say_any(draw: st.DrawFn, draft: _Draft, program: int, peer: int) -> None:
    what = draw(st.sampled_from(("load", "store", "need", "send", "receive")))
    value = draw(st.sampled_from([None, *draft.loads[program]]))
    part = draw(st.sampled_from((program, program, program, peer)))
    start = part * PART + 4 * draw(st.integers(0, 2))
    is_possible = value is not None if what == "need" else draft.mail[peer, program] > 0
    if what not in ("need", "receive") or is_possible:
        draft.say(Command(program, what, start, value, peer))


def _hand_over(draw: st.DrawFn, draft: _Draft, program: int, peer: int) -> None:
    """Store, tell, hear, use: with what orders them, or without some of it."""
    start = program * PART + 4 * draw(st.integers(0, 2))
    draft.say(Command(program, draw(st.sampled_from(("load", "store"))), start))
    reads_back = draw(st.sampled_from((True, True, False)))
    if reads_back:
        draft.say(Command(program, "load", start))
        if draw(st.booleans()):
            draft.say(Command(program, "need", value=draft.loads[program][-1]))
            reads_back = False
    draft.say(Command(program, "send", 0, draft.loads[program][-1] if reads_back else None, peer))
    if draw(st.sampled_from((True, True, False))):
        while draft.mail[program, peer]:
            draft.say(Command(peer, "receive", peer=program))
    draft.say(Command(peer, draw(st.sampled_from(("load", "store"))), start))


def build_kernel(lines: list[Command]) -> Any:
    """The lines of all programs in one function, each behind a test of whose it is."""
    text = ["def kernel(x):", f"    places = tl.arange(0, {BLOCK})"]
    for number, line in enumerate(lines):
        text.append(f"    if tl.program_id(0) == {line.program}: {_statement(number, line)}")
    scope: dict[str, Any] = {"tl": tl}
    exec(compile("\n".join(text), "random_kernel", "exec"), scope)
    return scope["kernel"]


def _statement(number: int, line: Command) -> str:
    value = f"tl.zeros(({BLOCK},), tl.float32)" if line.value is None else f"v{line.value}"
    match line.what:
        case "load":
            return f"v{number} = tl.load(x + {line.start} + places)"
        case "store":
            return f"tl.store(x + {line.start} + places, {value})"
        case "need":
            return f"float(tl.max({value}, 0))"
        case "send":
            return f'tl.send("to{line.peer}", {value})'
    return f'tl.recv("to{line.peer}", ({BLOCK},), tl.float32)'


def racing_lines(lines: list[Command]) -> set[frozenset[int]]:
    """Pairs of lines of the kernel's text of which nothing says which one is first."""
    before: dict[int, set[int]] = {}  # by access: those that are complete when it begins
    knows: dict[int, set[int]] = {program: set() for program in range(NUM_PROGRAMS)}
    mail: dict[tuple[int, int], list[set[int]]] = {}
    for number, line in enumerate(lines):
        used = set() if line.value is None else before[line.value] | {line.value}
        match line.what:
            case "load" | "store":
                before[number] = knows[line.program] | _own(lines, number, before)
                if line.what == "store":
                    before[number] |= used
            case "need":
                knows[line.program] |= used
            case "send":
                sent = knows[line.program] | used
                mail.setdefault((line.program, line.peer), []).append(sent)
            case "receive":
                knows[line.program] |= mail[line.peer, line.program].pop(0)
    return {
        frozenset((one + FIRST_LINE, other + FIRST_LINE))
        for one in before
        for other in before
        if one < other
        and lines[one].program != lines[other].program
        and _meet(lines[one], lines[other])
        and one not in before[other]
        and other not in before[one]
    }


def _own(lines: list[Command], number: int, before: dict[int, set[int]]) -> set[int]:
    """A program's accesses to the same elements keep their order."""
    found: set[int] = set()
    for other, past in before.items():
        if lines[other].program == lines[number].program and _meet(lines[other], lines[number]):
            found |= past | {other}
    return found


def _meet(one: Command, other: Command) -> bool:
    return abs(one.start - other.start) < BLOCK and "store" in (one.what, other.what)
