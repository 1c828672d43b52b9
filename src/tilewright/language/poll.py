"""Programs that look at one address again and again, and the end of that when it is in vain.

A look takes simulated time, so something can always happen and no engine runs dry. But if nobody
has written anything for many looks, and all that can still happen is another look, then no look
will ever find anything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.errors import DeadlockError
from tilewright.language.program import Program
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Pointers

__all__ = ("MAX_LOOKS", "Poll", "note_look")

MAX_LOOKS = 2**13  # until it is asked whether they can find anything
RECENT_TURNS = 16  # who has not looked for so many turns does something else


@dataclass(slots=True)
class Poll:
    """The looks of one program at one address, one after the other."""

    address: int
    words: str  # who looks, and at which line
    since_ps: int
    last_ps: int
    looks: int = 1
    writes: int = -1  # of all programs, when it was last asked


def note_look(program: Program, pointer: object) -> None:
    """The program is about to look; raises DeadlockError if that has become pointless."""
    if not isinstance(pointer, Pointers) or pointer.shape or pointer.offsets is not None:
        return
    hub = program.run.hub
    number, address = hub.current.number, pointer.affine.base
    poll = hub.polls.get(number)
    if poll is None or poll.address != address:
        words = f"{program} at {line_text(source_line())}"
        hub.polls[number] = Poll(address, words, hub.now_ps, hub.now_ps)
        return
    poll.looks += 1
    poll.last_ps = hub.now_ps
    if poll.looks % MAX_LOOKS == 0:
        _check(program, poll)


def _check(program: Program, poll: Poll) -> None:
    hub, writes = program.run.hub, _num_writes(program)
    if writes != poll.writes:
        poll.writes = writes
        return
    turn_ps = (poll.last_ps - poll.since_ps) // poll.looks
    recent_ps = poll.last_ps - RECENT_TURNS * turn_ps
    others = {number: other for number, other in hub.polls.items() if other.last_ps >= recent_ps}
    if hub.is_up_to(others):
        raise _in_vain(others.values())


def _num_writes(program: Program) -> int:
    """All that programs of the launch have begun to write, exchange or send."""
    run = program.run
    run.count_accesses()
    boxes = () if run.post is None else run.post.outgoing.values()
    num_sent: int = sum(box.num_sent for box in boxes)
    return run.counters.stores + run.counters.atomics + num_sent


def _in_vain(polls: Iterable[Poll]) -> DeadlockError:
    lines = tuple(
        f"{poll.words} has looked {poll.looks} times at {poll.address:#x} since {poll.since_ps} ps"
        for poll in polls
    )
    found = "nothing but looks that find what they found before:\n" + "\n".join(lines)
    expected = "somebody who writes there"
    fix = "write before you wait, count the looks and give up, or use messages"
    return DeadlockError("poll", found, expected, fix, lines)
