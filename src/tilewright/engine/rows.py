"""The rows that a task graph is made of, as ``TaskGraph`` writes and cores read them."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from tilewright.engine.spec import integer_fix, integer_words
from tilewright.units import MAX_PS

__all__ = (
    "EXCHANGE",
    "HOLD",
    "NO_EFFECT",
    "TIMER",
    "TRANSFER",
    "Block",
    "Row",
    "TaskKind",
    "row_problem",
)

NO_EFFECT = -1

Pairs = tuple[tuple[int, int], ...]
Row = tuple[int, int, int, int, int, int, tuple[int, ...], Pairs, Pairs, int]
"""Kind, target, amount, delay, effect, tag, afters, waits, raises, effect of being served.

Waits and raises are pairs (signal, value).
"""
Block = npt.NDArray[np.int64]
"""Rows without edges, the first six columns of each."""


class TaskKind(IntEnum):
    """The numbers are shared with csrc."""

    TRANSFER = 0
    HOLD = 1
    TIMER = 2
    EXCHANGE = 3


TRANSFER, HOLD, TIMER, EXCHANGE = (kind.value for kind in TaskKind)
TARGET_NAMES = {TRANSFER: "route", HOLD: "route", TIMER: "route", EXCHANGE: "round_trip"}
AMOUNT_NAMES = {TRANSFER: "num_bytes", HOLD: "hold_ps", TIMER: "amount", EXCHANGE: "num_bytes"}


def row_problem(number: int, row: Row) -> tuple[str, str, str] | None:
    """What is wrong with a row that no core takes: found, expected, fix."""
    kind, target, amount, delay_ps, effect, tag, afters, waits, raises, served_effect = row
    fields = (
        (TARGET_NAMES[kind], target, 0),
        (AMOUNT_NAMES[kind], amount, 0 if kind == TIMER else 1),
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
