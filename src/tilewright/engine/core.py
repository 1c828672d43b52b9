"""What passes between ``Engine`` and the two cores: rows of integers, and their special values."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.engine.spec import integer_fix, integer_words
from tilewright.units import MAX_PS

UNBOUNDED = -1
SOURCE = -1
OWNER_SHIFT = 40
MAX_QUEUES = 2**17  # in front of one server
NO_GATE = -1
NO_ROUTE = -1
NO_LIMIT = -1
NO_WAKE = 2**63 - 1
LAST_PS = 2**62 - 1  # the last instant of a run: every sum of two times fits int64
LAST_ACCESS_PS = 2**61  # when a memory takes in its last access: its decisions end before LAST_PS
NO_ROOM = -1  # instead of an issued value: it does not fit the far space
NO_VALUE = -1  # of a constant that is stored, of an update that begins
NO_WALK = 0  # of an access whose pages are at hand: commands count from 1
NO_TASK = -1  # instead of the end of a composite: none is open; of an issue: there was none
FROM_START = -1  # of a step: it comes after no other one, but when its command starts

IssuedAccess = tuple[int, int, int, int, int, int]
"""Round trip, segments, bytes of a segment, stride, address of an exchange; and the last command
that walks, or walked, for one of its pages: its own, an earlier one, or ``NO_WALK``.
"""


Pairs = tuple[tuple[int, int], ...]
"""Of a signal and a value."""
IssuedStep = tuple[int, int, int, int, int, Pairs, Pairs, int, bool]
"""Kind, target, amount, tag, the step it comes after, waits, raises, served effect, and whether its
command ends with it.
"""


class WaitingTask(NamedTuple):
    """A task that is not complete when events run out."""

    task_id: int
    num_packets_left: int  # 0: it has not started
    afters: tuple[int, ...]  # ids of the unfinished tasks it comes after
    waits: tuple[tuple[int, int, int], ...]  # (signal, value now, value awaited)
    raises: tuple[int, ...]  # signals that it would raise


class WaitingPacket(NamedTuple):
    """A packet in a queue when events run out."""

    packet_id: int
    task_id: int
    server: int
    source: int  # the server it came from, or SOURCE
    waits_in: int  # the channel it waits in
    wants: int  # the channel behind the server that it needs
    num_flits: int
    last_hop: bool


NO_EFFECT = -1

Segments = tuple[int, int] | tuple[()]
"""Bytes of a segment and from one segment's address to the next; empty: all bytes are one."""
Row = tuple[int, int, int, int, int, int, tuple[int, ...], Pairs, Pairs, int, Segments]
"""Kind, target, amount, delay, effect, tag, afters, waits, raises, served effect, segments.

Waits and raises are pairs (signal, value).
"""
ONE_SEGMENT: Segments = ()
Block = npt.NDArray[np.int64]
"""Rows without edges, the first six columns of each."""


class TaskKind(IntEnum):
    """The numbers are shared with csrc."""

    TRANSFER = 0
    HOLD = 1
    TIMER = 2
    EXCHANGE = 3
    EARLIER = 4  # its amount is the id of the task that it stands for


TRANSFER, HOLD, TIMER, EXCHANGE, EARLIER = (kind.value for kind in TaskKind)
TARGET_NAMES = {EXCHANGE: "round_trip"}
AMOUNT_NAMES = {
    TRANSFER: "num_bytes",
    HOLD: "hold_ps",
    TIMER: "amount",
    EXCHANGE: "num_bytes",
    EARLIER: "task_id",
}


def rows_of(entries: Iterable[Row | Block]) -> Iterator[Row]:
    """Yield all rows, those of blocks too."""
    for entry in entries:
        if isinstance(entry, tuple):
            yield entry
        else:
            for row in entry.tolist():
                yield (*row, (), (), (), NO_EFFECT, ONE_SEGMENT)


def row_problem(number: int, row: Row) -> tuple[str, str, str] | None:
    """What is wrong with a row that no core takes: found, expected, fix."""
    kind, target, amount, delay_ps, effect, tag, afters, waits, raises, served_effect = row[:10]
    fields = (
        (TARGET_NAMES.get(kind, "route"), target, 0),
        (AMOUNT_NAMES[kind], amount, 0 if kind in (TIMER, EARLIER) else 1),
        ("delay_ps", delay_ps, 0),
        ("effect", effect, NO_EFFECT),
        ("tag", tag, -MAX_PS),
        ("served_effect", served_effect, NO_EFFECT),
    )
    for name, value, low in fields:
        if type(value) is not int or not low <= value <= MAX_PS:
            return integer_words(name, value, low, MAX_PS)
    for task in afters:
        if type(task) is not int or not 0 <= task < number:
            expected = f"an earlier task of the graph, an int below {number}"
            return f"after = {task!r}", expected, integer_fix(task) or "correct the task"
    for pair in (*waits, *raises):
        if not _is_signal_pair(pair):
            expected = f"a tuple (signal, value) of ints, the value in 1..{MAX_PS}"
            return f"{pair!r} in waits or raises", expected, _pair_fix(pair)
    return _segments_problem(amount, *row[10]) if row[10] else None


def _segments_problem(
    num_bytes: int, segment_bytes: int, stride_bytes: int
) -> tuple[str, str, str] | None:
    """All addresses of an access lie within the reach of an int64 from its tag."""
    for name, value, low in (
        ("segment_bytes", segment_bytes, 1),
        ("stride_bytes", stride_bytes, -MAX_PS),
    ):
        if type(value) is not int or not low <= value <= MAX_PS:
            return integer_words(name, value, low, MAX_PS)
    num_segments, rest = divmod(num_bytes, segment_bytes)
    if rest:
        found = f"num_bytes = {num_bytes} with segment_bytes = {segment_bytes}"
        return found, "a multiple of segment_bytes", "correct one of them"
    if (num_segments - 1) * abs(stride_bytes) > MAX_PS - segment_bytes:
        found = f"{num_segments} segments with stride_bytes = {stride_bytes}"
        return found, f"a reach of at most {MAX_PS} bytes", "correct stride_bytes"
    return None


def _pair_fix(pair: object) -> str:
    members = pair if isinstance(pair, tuple) else ()
    return next(filter(None, map(integer_fix, members)), "correct the task")


def _is_signal_pair(pair: object) -> bool:
    if type(pair) is not tuple or len(pair) != 2:
        return False
    signal, amount = pair
    if type(signal) is not int or type(amount) is not int:
        return False
    return 0 <= signal <= MAX_PS and 1 <= amount <= MAX_PS
