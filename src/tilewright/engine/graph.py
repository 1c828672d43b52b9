"""A task graph: what to send, hold and wait for, in the rows that a core reads in one call."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.engine.core import (
    EARLIER,
    EXCHANGE,
    HOLD,
    NO_EFFECT,
    ONE_SEGMENT,
    TIMER,
    TRANSFER,
    Block,
    Row,
    row_problem,
    rows_of,
)
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference.core import Core
from tilewright.engine.reference.graph import Graph
from tilewright.errors import EngineError
from tilewright.units import MAX_PS

Pair = tuple[int, int]
Integers = Iterable[int] | npt.NDArray[np.int64]

COLUMNS = ("routes", "num_bytes", "delays_ps", "effects")
LISTS = {
    "after": ("a list of earlier tasks", "pass (task,)"),
    "waits": ("a list of pairs (signal, threshold)", "pass ((signal, threshold),)"),
    "raises": ("a list of pairs (signal, amount)", "pass ((signal, amount),)"),
}


class TaskGraph:
    """Tasks in the order of their ids; a task may only come after earlier ones.

    A graph may be submitted any number of times; the first submission checks and freezes it.
    What all kinds of tasks take:

    - ``after``: earlier tasks of the graph, as their methods returned them; it starts when all
      of them have ended.
    - ``waits``: pairs (signal, threshold); it starts when each signal has at least that value.
    - ``raises``: pairs (signal, amount); its end adds the amount to the signal.
    - ``effect``: a number >= 0 that ``Engine.take_effects`` reports with the time of its end;
      ``NO_EFFECT`` reports nothing.
    - ``tag``: any number, an address for instance, that servers in Python see in its packets; a
      timer has none.

    >>> graph = TaskGraph()
    >>> load = graph.transfer(0, num_bytes=4096)
    >>> compute = graph.hold(1, hold_ps=12_000, after=(load,))
    >>> len(graph)
    2
    """

    __slots__ = ("_compiled", "_core", "rows", "size")

    def __init__(self) -> None:
        self.rows: list[Row | Block] = []
        self.size = 0
        self._core: Core | None = None
        self._compiled: Graph | None = None

    def __repr__(self) -> str:
        state = "being built" if self._core is None else "frozen"
        return f"<TaskGraph of {self.size} tasks, {state}>"

    def __len__(self) -> int:
        return self.size

    def transfer(
        self,
        route: int,
        num_bytes: int,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[Pair] = (),
        raises: Iterable[Pair] = (),
        effect: int = NO_EFFECT,
        tag: int = 0,
    ) -> int:
        """Send bytes over a route, cut into packets."""
        if self._core is not None:
            raise self._frozen()
        if type(after) is not tuple or type(waits) is not tuple or type(raises) is not tuple:
            after, waits, raises = self._as_tuples(after, waits, raises)
        self.rows.append(
            (TRANSFER, route, num_bytes, delay_ps, effect, tag, after, waits, raises, NO_EFFECT, ())
        )
        number = self.size
        self.size = number + 1
        return number

    def exchange(
        self,
        round_trip: int,
        num_bytes: int,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[Pair] = (),
        raises: Iterable[Pair] = (),
        effect: int = NO_EFFECT,
        served_effect: int = NO_EFFECT,
        tag: int = 0,
        segment_bytes: int | None = None,
        stride_bytes: int = 0,
    ) -> int:
        """Read or write bytes over a round trip: packets go there, answers come back.

        ``served_effect`` is reported when the last packet has been served there, ``effect`` when
        the last answer is back. The bytes may lie apart: ``num_bytes`` in segments of
        ``segment_bytes``, segment i at the address ``tag + i * stride_bytes``. Segments may
        overlap; a packet never has bytes of two.
        """
        if self._core is not None:
            raise self._frozen()
        if type(after) is not tuple or type(waits) is not tuple or type(raises) is not tuple:
            after, waits, raises = self._as_tuples(after, waits, raises)
        segments = ONE_SEGMENT
        if segment_bytes is not None:
            segments = (segment_bytes, stride_bytes)
        elif stride_bytes:
            found = f"stride_bytes = {stride_bytes!r} without segment_bytes"
            raise EngineError(self._where(), found, "both or none", "say the bytes of a segment")
        self.rows.append(
            (EXCHANGE, round_trip, num_bytes, delay_ps, effect, tag, after, waits, raises,
             served_effect, segments)
        )  # fmt: skip
        number = self.size
        self.size = number + 1
        return number

    def hold(
        self,
        route: int,
        hold_ps: int,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[Pair] = (),
        raises: Iterable[Pair] = (),
        effect: int = NO_EFFECT,
        tag: int = 0,
    ) -> int:
        """Occupy the one server of a route for a time."""
        if self._core is not None:
            raise self._frozen()
        if type(after) is not tuple or type(waits) is not tuple or type(raises) is not tuple:
            after, waits, raises = self._as_tuples(after, waits, raises)
        self.rows.append(
            (HOLD, route, hold_ps, delay_ps, effect, tag, after, waits, raises, NO_EFFECT, ())
        )
        number = self.size
        self.size = number + 1
        return number

    def timer(
        self,
        delay_ps: int = 0,
        after: Iterable[int] = (),
        waits: Iterable[Pair] = (),
        raises: Iterable[Pair] = (),
        effect: int = NO_EFFECT,
    ) -> int:
        """Let time pass; with no delay, a join of everything it waits for."""
        if self._core is not None:
            raise self._frozen()
        lists = self._as_tuples(after, waits, raises)
        self.rows.append((TIMER, 0, 0, delay_ps, effect, 0, *lists, NO_EFFECT, ONE_SEGMENT))
        number = self.size
        self.size = number + 1
        return number

    def earlier(self, task_id: int) -> int:
        """A stand-in for a task of any owner, submitted before this graph and known by its id.

        It ends when that task does, at once if that has ended already; tasks of this graph come
        ``after`` it.
        """
        if self._core is not None:
            raise self._frozen()
        self.rows.append((EARLIER, 0, task_id, 0, NO_EFFECT, 0, (), (), (), NO_EFFECT, ()))
        number = self.size
        self.size = number + 1
        return number

    def transfers(
        self, routes: Integers, *, num_bytes: Integers, delays_ps: Integers, effects: Integers
    ) -> range:
        """Many independent transfers at once, a column for each field."""
        named = zip(COLUMNS, (routes, num_bytes, delays_ps, effects), strict=True)
        columns = [_column(self._where(), name, values) for name, values in named]
        if len({column.size for column in columns}) > 1:
            found = f"columns of lengths {', '.join(str(column.size) for column in columns)}"
            raise EngineError(self._where(), found, "four columns of one length", "align them")
        block = np.zeros((columns[0].size, 6), np.int64)
        for place, column in enumerate(columns, start=1):
            block[:, place] = column
        if self._core is not None:
            raise self._frozen()
        self.rows.append(block)
        first, self.size = self.size, self.size + len(block)
        return range(first, self.size)

    def compiled_for(self, core: Core) -> Graph:
        """The core's own form of this graph, made once."""
        if self._compiled is None or self._core is not core:
            self._compiled = core.compile(self.rows)
            self._core = core
        return self._compiled

    def row_error(self, fault: CoreFault) -> EngineError | None:
        """For a row that breaks the rules; other faults are not the graph's to tell."""
        return self._row_error(fault.first) if fault.kind is FaultKind.BAD_ROW else None

    def _row_error(self, number: int) -> EngineError:
        unknown = ("an unknown fault", "a task", "report it")
        words = row_problem(number, next(islice(rows_of(self.rows), number, None))) or unknown
        return EngineError(f"task graph, task {number}", *words)

    def _as_tuples(
        self, after: Iterable[int], waits: Iterable[Pair], raises: Iterable[Pair]
    ) -> tuple[tuple[int, ...], tuple[Pair, ...], tuple[Pair, ...]]:
        for name, value in zip(LISTS, (after, waits, raises), strict=True):
            if not isinstance(value, Iterable):
                expected, fix = LISTS[name]
                raise EngineError(self._where(), f"{name} = {value!r}", expected, fix)
        return tuple(after), tuple(waits), tuple(raises)

    def _frozen(self) -> EngineError:
        expected = "one still being built"
        return EngineError(self._where(), "a submitted graph", expected, "build a new graph")

    def _where(self) -> str:
        return f"task graph, task {self.size}"


def _column(where: str, name: str, values: Integers) -> npt.NDArray[np.integer[Any]]:
    """One column of integers that int64 can hold."""
    try:
        column = np.asarray(values)
    except (TypeError, ValueError):
        raise EngineError(where, f"a ragged {name}", "a column of integers", "flatten it") from None
    if column.ndim != 1:
        found = f"{name} of shape {column.shape}"
        raise EngineError(where, found, "a column of integers", f"pass a list or array of {name}")
    if column.size and column.dtype.kind not in "iu":
        found = f"{name} of type {column.dtype}"
        raise EngineError(where, found, f"integers of at most {MAX_PS}", f"convert {name}")
    if column.size and column.dtype.kind == "u" and (largest := int(column.max())) > MAX_PS:
        found = f"{name} of up to {largest}"
        raise EngineError(where, found, f"integers of at most {MAX_PS}", f"correct {name}")
    return column


def check_not_empty(graph: object) -> None:
    """Refuse what is no graph, or has no last task to watch."""
    if not isinstance(graph, TaskGraph):
        raise no_graph_error(graph)
    if not graph.size:
        raise EngineError("submit", "an empty graph", "a last task to watch", "add a task")


def no_graph_error(graph: object) -> EngineError:
    return EngineError("submit", repr(graph), "a TaskGraph", "build one")
