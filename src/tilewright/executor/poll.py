"""Programs that read the same bytes again and again, and the end of that when it is in vain.

A read takes simulated time, so something can always happen and no engine runs dry. But if memory
stays as it is, all that can still happen is another read, and every program that reads has come
back to where it was, then no read will ever find anything else."""

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import CO_OPTIMIZED
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from tilewright.errors import DeadlockError
from tilewright.language.affine import Affine
from tilewright.language.block_type import BlockType, PointerType
from tilewright.language.dtype import DType
from tilewright.language.front import FUNCTION_TYPES
from tilewright.language.source import SourceLine, is_ours, line_text, source_line
from tilewright.language.value import Block, Index, Mask, Pointers

FIRST_WAITS = 2**8  # until the state of a program is looked at, and then at twice as many
MAX_POLLS = 2**13  # by atomics at one address, after which a program counts as one that polls
MAX_LINES = 8  # programs that the text of an error names
RECENT_TURNS = 16  # who has not waited for so many turns does something else


@dataclass(slots=True)
class Poll:
    """The waits of one program for values, since memory last changed."""

    num_changes: int  # of memory, until then
    since_ps: int
    last_ps: int
    next_sample: int  # waits at which the state is looked at
    waits: int = 0
    polls: int = 0  # atomics and volatile loads, at one address
    address: int = -1  # of these
    place: tuple[int, SourceLine] | None = None  # where it was: address and line
    state: tuple[Any, ...] | None = None
    is_in_vain: bool = False
    text: str = ""  # who polls what, at which line


def note_poll(program: Any, pointer: object) -> None:
    """Note that a program is about to poll one address: by an atomic or a volatile load."""
    if not isinstance(pointer, Pointers) or pointer.shape or pointer.offsets is not None:
        return
    hub, address = program.run.hub, pointer.affine.base
    poll = hub.polls.get(hub.current.number)
    if poll is None:
        return
    poll.polls = poll.polls + 1 if poll.address == address else 1
    poll.address = address


def note_wait(program: Any) -> None:
    """Note that a program has waited for a value; raise DeadlockError if that is pointless.

    ``program`` is a Program of the language, and the running one.
    """
    run = program.run
    hub, num_changes = run.hub, run.effects.num_changes
    number = hub.current.number
    poll = hub.polls.get(number)
    if poll is None or poll.num_changes != num_changes:
        hub.polls[number] = Poll(num_changes, hub.now_ps, hub.now_ps, FIRST_WAITS)
        return
    poll.waits += 1
    poll.last_ps = hub.now_ps
    if poll.waits >= poll.next_sample:
        _sample(program, poll, number)


def _sample(program: Any, poll: Poll, number: int) -> None:
    """Compare where the program is with where it was, and go on from here."""
    place = program.last_read, source_line()
    if poll.place not in (None, place) and poll.waits < 2 * poll.next_sample:
        return  # it may come by the place again
    state = kernel_state()
    is_back = poll.place == place and state is not None and state == poll.state
    is_long = poll.waits >= MAX_POLLS and poll.polls >= poll.waits
    poll.place, poll.state, poll.next_sample = place, state, 2 * poll.waits
    poll.is_in_vain = (is_back or is_long) and program.run.hub.has_nothing_under_way(number)
    if poll.is_in_vain:
        poll.text = f"{program} at {line_text(place[1])} has polled {_element(program)}"
        _check(program.run.hub, poll)


def _check(hub: Any, poll: Poll) -> None:
    """Raise DeadlockError if nothing but polls in vain can happen."""
    others: Mapping[int, Poll] = {
        number: other
        for number, other in hub.polls.items()
        if other.is_in_vain and other.num_changes == poll.num_changes and _is_recent(other, poll)
    }
    if hub.is_up_to(others):
        raise _in_vain(others.values())


def _is_recent(other: Poll, poll: Poll) -> bool:
    turn_ps = (other.last_ps - other.since_ps) // max(1, other.waits)
    return other.last_ps >= poll.last_ps - RECENT_TURNS * turn_ps


def _element(program: Any) -> str:
    """Return the byte that a program has read last, and what it is of."""
    address = program.last_read
    tensor = program.run.tensors().at(address)
    return f"{address:#x}" if tensor is None else f"{tensor.element_at(address)} ({address:#x})"


def _in_vain(polls: Iterable[Poll]) -> DeadlockError:
    lines = tuple(f"{poll.text} {poll.waits} times since {poll.since_ps} ps" for poll in polls)
    left = len(lines) - MAX_LINES
    shown = [*lines[:MAX_LINES], *([f"... and {left} more"] if left > 0 else [])]
    found = "only programs that poll, and nothing that can change what they read:\n"
    expected = "a store, atomic or message that ends the wait"
    fix = "write the flag first, count the polls and give up, or use tl.send and tl.recv"
    return DeadlockError("poll", found + "\n".join(shown), expected, fix, lines)


MAX_PARTS = 256  # of a tuple, list or dict
MAX_BYTES = 4096  # of an array

NUMBERS = (bool, int, float, complex, str, bytes, range, type(None), np.generic)
FIXED = (*FUNCTION_TYPES, BuiltinFunctionType, ModuleType, type, DType, BlockType, PointerType)
CHANGES_ELSEWHERE = frozenset(
    ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR")
)


class _UnknownError(Exception):
    """Something whose state cannot be told."""


def kernel_state() -> tuple[Any, ...] | None:
    """Return where the calling kernel is, with the values of all its variables.

    Two equal states lead to the same steps while memory stays as it is. None: a variable or a
    function of the kernel may hide what it remembers. The state of a loop over an iterator that
    repeats itself is hidden too; whoever compares states has to allow for that.
    """
    try:
        return tuple(_frame_state(frame) for frame in _kernel_frames())
    except _UnknownError:
        return None


def _kernel_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code):
            yield frame
        frame = frame.f_back


def _frame_state(frame: FrameType) -> tuple[Any, ...]:
    code = frame.f_code
    if _changes_elsewhere(code):
        raise _UnknownError
    variables = frame.f_locals
    try:
        state = tuple((name, _value_state(value)) for name, value in variables.items())
    finally:
        if isinstance(variables, dict):
            variables.clear()  # a copy, which would keep values that the kernel has let go of
    return code, frame.f_lasti, state


@lru_cache(1024)
def _changes_elsewhere(code: CodeType) -> bool:
    """Whether a function may change more than its own variables."""
    if not code.co_flags & CO_OPTIMIZED:
        return True
    return any(each.opname in CHANGES_ELSEWHERE for each in dis.get_instructions(code))


def _value_state(value: Any) -> Any:
    if isinstance(value, NUMBERS):
        return type(value), repr(value)
    if isinstance(value, FIXED):
        return value
    match value:
        case Block():
            return _block_state(value)
        case Pointers():
            offsets = None if value.offsets is None else _value_state(value.offsets)
            return value.element, _affine_state(value.affine), offsets
        case Index():
            return value.dtype, _affine_state(value.affine)
        case Mask():
            return value.box.shape, value.box.low, value.box.high
        case tuple() | list() if len(value) <= MAX_PARTS:
            return type(value), tuple(map(_value_state, value))
        case dict() if len(value) <= MAX_PARTS:
            return tuple((_value_state(key), _value_state(part)) for key, part in value.items())
    raise _UnknownError


def _affine_state(affine: Affine) -> tuple[Any, ...]:
    return affine.base, affine.strides, affine.shape


def _block_state(block: Block) -> Any:
    """Return the elements if they are known, else the computation that gives them."""
    node = block.node
    if node is None or node.run is not None:
        return block.type, node
    array = np.asarray(node.value)
    return (block.type, node) if array.nbytes > MAX_BYTES else (block.type, array.tobytes())
