"""A task graph: what to send, hold and wait for, in the columns that a core reads in one call."""

from array import array
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tilewright.engine.spec import check_integer
from tilewright.errors import EngineError
from tilewright.units import MAX_PS

if TYPE_CHECKING:
    from tilewright.engine.core import CompiledGraph, Core

__all__ = ("NO_EFFECT", "TaskGraph", "TaskKind")

NO_EFFECT = -1
ROW = 9  # kind, target, amount, delay, effect, tag, then the numbers of afters, waits and raises
_COLUMNS = ("kind", "target", "amount", "delay_ps", "effect", "tag")

Integers = Iterable[int] | npt.NDArray[np.int64]


class TaskKind(IntEnum):
    """The numbers are shared with csrc."""

    TRANSFER = 0
    HOLD = 1
    TIMER = 2


class TaskGraph:
    """Tasks in the order of their ids; a task may only come after earlier ones.

    A graph may be submitted any number of times; the first submission freezes it.

    >>> graph = TaskGraph()
    >>> load = graph.transfer(0, num_bytes=4096)
    >>> compute = graph.hold(1, hold_ps=12_000, after=(load,))
    >>> len(graph)
    2
    """

    __slots__ = ("_compiled", "_owner", "_size", "edges", "rows")

    def __init__(self) -> None:
        self.rows = array("q")
        self.edges = array("q")  # per task: afters, (signal, value) waits, (signal, amount) raises
        self._size = 0
        self._owner: Core | None = None
        self._compiled: CompiledGraph | None = None

    def __len__(self) -> int:
        return self._size

    def transfer(
        self,
        route: int,
        *,
        num_bytes: int,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[tuple[int, int]] = (),
        raises: Iterable[tuple[int, int]] = (),
        effect: int = NO_EFFECT,
        tag: int = 0,
    ) -> int:
        """Send bytes over a route, cut into packets."""
        check_integer(self._where(), "num_bytes", num_bytes, 1, MAX_PS)
        row = (TaskKind.TRANSFER, route, num_bytes, delay_ps, effect, tag)
        return self._append(row, after, waits, raises)

    def hold(
        self,
        route: int,
        *,
        hold_ps: int,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[tuple[int, int]] = (),
        raises: Iterable[tuple[int, int]] = (),
        effect: int = NO_EFFECT,
        tag: int = 0,
    ) -> int:
        """Occupy the one server of a route for a time."""
        check_integer(self._where(), "hold_ps", hold_ps, 1, MAX_PS)
        row = (TaskKind.HOLD, route, hold_ps, delay_ps, effect, tag)
        return self._append(row, after, waits, raises)

    def timer(
        self,
        delay_ps: int = 0,
        *,
        after: Iterable[int] = (),
        waits: Iterable[tuple[int, int]] = (),
        raises: Iterable[tuple[int, int]] = (),
        effect: int = NO_EFFECT,
    ) -> int:
        """Let time pass; with no delay, a join of everything it waits for."""
        return self._append((TaskKind.TIMER, 0, 0, delay_ps, effect, 0), after, waits, raises)

    def transfers(
        self, routes: Integers, *, num_bytes: Integers, delays_ps: Integers, effects: Integers
    ) -> range:
        """Many independent transfers at once, a column for each field."""
        self._check_open()
        columns = [np.asarray(c, np.int64) for c in (routes, num_bytes, delays_ps, effects)]
        if any(column.shape != columns[0].shape or column.ndim != 1 for column in columns):
            shapes = ", ".join(str(column.shape) for column in columns)
            raise EngineError(
                self._where(), f"columns of shapes {shapes}", "four equal lengths", "align them"
            )
        for name, column, low in zip(
            ("route", "num_bytes", "delay_ps", "effect"), columns, (0, 1, 0, NO_EFFECT), strict=True
        ):
            if column.size and int(column.min()) < low:
                check_integer(self._where(), name, int(column.min()), low, MAX_PS)
        block = np.zeros((columns[0].size, ROW), np.int64)
        block[:, 0] = TaskKind.TRANSFER
        for place, column in enumerate(columns, start=1):
            block[:, place] = column
        self.rows.frombytes(block.data.cast("B"))
        first, self._size = self._size, self._size + len(block)
        return range(first, self._size)

    def compiled_for(self, core: "Core") -> "CompiledGraph":
        """The core's own form of this graph, made once."""
        if self._compiled is None or self._owner is not core:
            self._compiled = core.compile(self.rows, self.edges)
            self._owner = core
        return self._compiled

    def _append(
        self,
        row: tuple[int, ...],
        after: Iterable[int],
        waits: Iterable[tuple[int, int]],
        raises: Iterable[tuple[int, int]],
    ) -> int:
        self._check_open()
        after, waits, raises = tuple(after), tuple(waits), tuple(raises)
        try:
            packed = array("q", (*row, len(after), len(waits), len(raises)))
            edges = array("q", after)
            for signal, amount in (*waits, *raises):
                edges.extend((signal, amount))
        except (OverflowError, TypeError, ValueError) as error:
            found = f"{row}, after {after}, waits {waits}, raises {raises} ({error})"
            raise EngineError(self._where(), found, "int64 fields", "pass integers") from error
        if min(row) < 0 or edges:
            self._check_row(row, after, waits, raises)
        self.rows.extend(packed)
        self.edges.extend(edges)
        self._size += 1
        return self._size - 1

    def _check_row(
        self,
        row: tuple[int, ...],
        after: tuple[int, ...],
        waits: tuple[tuple[int, int], ...],
        raises: tuple[tuple[int, int], ...],
    ) -> None:
        lows = (0, 0, 0, 0, NO_EFFECT, -MAX_PS)
        for name, value, low in zip(_COLUMNS, row, lows, strict=True):
            if value < low:
                raise EngineError(
                    self._where(), f"{name} = {value}", f"at least {low}", f"correct {name}"
                )
        for task in after:
            if not 0 <= task < self._size:
                found, fix = f"after task {task}", "submit(..., after=ids) takes other graphs' tasks"
                raise EngineError(self._where(), found, f"a task in 0..{self._size - 1}", fix)
        for signal, amount in (*waits, *raises):
            if signal < 0 or amount < 1:
                found = f"signal {signal} with {amount}"
                raise EngineError(self._where(), found, "a signal and a value >= 1", "correct it")

    def _check_open(self) -> None:
        if self._compiled is not None:
            fix = "build a new graph"
            raise EngineError(self._where(), "a submitted graph", "one still being built", fix)

    def _where(self) -> str:
        return f"task graph, task {self._size}"
