"""The rows that a task graph is made of, as ``TaskGraph`` writes and cores read them."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tilewright.engine.spec import integer_fix, integer_words
from tilewright.units import MAX_PS

NO_EFFECT = -1

Pairs = tuple[tuple[int, int], ...]
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
