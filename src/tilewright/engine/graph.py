"""A task graph: what to send, hold and wait for, in the rows that a core reads in one call."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.rows import HOLD, NO_EFFECT, TIMER, TRANSFER, Block, Row, row_problem
from tilewright.errors import EngineError

if TYPE_CHECKING:
    from tilewright.engine.core import CompiledGraph, Core

__all__ = ("TaskGraph",)

Integers = Iterable[int] | npt.NDArray[np.int64]


class TaskGraph:
    """Tasks in the order of their ids; a task may only come after earlier ones.

    A graph may be submitted any number of times; the first submission checks and freezes it.

    >>> graph = TaskGraph()
    >>> load = graph.transfer(0, num_bytes=4096)
    >>> compute = graph.hold(1, hold_ps=12_000, after=(load,))
    >>> len(graph)
    2
    """

    __slots__ = ("_compiled", "_core", "_size", "rows")

    def __init__(self) -> None:
        self.rows: list[Row | Block] = []
        self._size = 0
        self._core: Core | None = None
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
        if self._compiled is not None:
            raise self._frozen()
        afters, awaited, raised = tuple(after), tuple(waits), tuple(raises)
        row = (TRANSFER, route, num_bytes, delay_ps, effect, tag, afters, awaited, raised)
        self.rows.append(row)
        self._size += 1
        return self._size - 1

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
        if self._compiled is not None:
            raise self._frozen()
        afters, awaited, raised = tuple(after), tuple(waits), tuple(raises)
        row = (HOLD, route, hold_ps, delay_ps, effect, tag, afters, awaited, raised)
        self.rows.append(row)
        self._size += 1
        return self._size - 1

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
        if self._compiled is not None:
            raise self._frozen()
        afters, awaited, raised = tuple(after), tuple(waits), tuple(raises)
        self.rows.append((TIMER, 0, 0, delay_ps, effect, 0, afters, awaited, raised))
        self._size += 1
        return self._size - 1

    def transfers(
        self, routes: Integers, *, num_bytes: Integers, delays_ps: Integers, effects: Integers
    ) -> range:
        """Many independent transfers at once, a column for each field."""
        columns = [np.asarray(column) for column in (routes, num_bytes, delays_ps, effects)]
        shapes = {column.shape for column in columns}
        if len(shapes) > 1 or columns[0].ndim != 1:
            found = f"columns of shapes {', '.join(str(column.shape) for column in columns)}"
            raise EngineError(self._where(), found, "four columns of one length", "align them")
        for name, column in zip(
            ("routes", "num_bytes", "delays_ps", "effects"), columns, strict=True
        ):
            if column.size and column.dtype.kind not in "iu":
                found = f"{name} of type {column.dtype}"
                raise EngineError(self._where(), found, "integers", f"convert {name}")
        block = np.zeros((columns[0].size, 6), np.int64)
        for place, column in enumerate(columns, start=1):
            block[:, place] = column
        if self._compiled is not None:
            raise self._frozen()
        self.rows.append(block)
        first, self._size = self._size, self._size + len(block)
        return range(first, self._size)

    def compiled_for(self, core: "Core") -> "CompiledGraph":
        """The core's own form of this graph, made once."""
        if self._compiled is None or self._core is not core:
            try:
                self._compiled = core.compile(self.rows)
            except CoreFault as fault:
                if fault.kind is FaultKind.BAD_ROW:
                    raise self._row_error(fault.first) from None
                raise
            self._core = core
        return self._compiled

    def _row_error(self, number: int) -> EngineError:
        rows: list[Row] = []
        for entry in self.rows:
            if isinstance(entry, tuple):
                rows.append(entry)
            else:
                rows.extend((*row, (), (), ()) for row in entry.tolist())
        found, expected = row_problem(number, rows[number]) or ("an unknown fault", "a task")
        return EngineError(f"task graph, task {number}", found, expected, "correct the task")

    def _frozen(self) -> EngineError:
        expected = "one still being built"
        return EngineError(self._where(), "a submitted graph", expected, "build a new graph")

    def _where(self) -> str:
        return f"task graph, task {self._size}"
