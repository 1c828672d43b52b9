"""The tasks that an issuer issues, in the pieces by which a core gets them."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.engine.core import EARLIER, NO_EFFECT, Block, Pairs, Row, Segments

Compile = Callable[[list[Row | Block]], Any]
"""From rows to the core's own form of a graph, with ``offsets``: the tasks' ids less the first."""


class Pieces(ABC):
    """Tasks numbered 0, 1, ... over all pieces; any task may come after one of an earlier piece."""

    def __init__(self, compile_rows: Compile, is_complete: Callable[[int], bool]) -> None:
        self._compile = compile_rows
        self._is_complete = is_complete  # of a submitted task, by its id
        self._rows: list[Row | Block] = []  # of the current piece
        self._base = 0  # number of its first task
        self._earlier: dict[int, int] = {}  # tasks of earlier pieces in this one
        self._starts: list[int] = []  # of the pieces taken, but for those all of which has ended
        self._pieces: list[tuple[int, list[int]]] = []  # their first id, and offsets
        self._ended_id = 0  # of a task that has ended, if pieces were forgotten

    @abstractmethod
    def _forget_before(self, first: int) -> None:
        """Forget what is known of the tasks before this one, which have ended."""

    @property
    def num_waiting(self) -> int:
        """Tasks that have not been taken."""
        return len(self._rows)

    def _task(
        self,
        kind: int,
        target: int,
        amount: int,
        delay_ps: int,
        after: Sequence[int],
        tag: int = 0,
        waits: Pairs = (),
        raises: Pairs = (),
        served: int = NO_EFFECT,
        segments: Segments = (),
    ) -> int:
        """Add a task to the current piece, after tasks of any piece; return its number."""
        base = self._base
        indices = tuple([task - base if task >= base else self._index_of(task) for task in after])
        self._rows.append(
            (kind, target, amount, delay_ps, NO_EFFECT, tag, indices, waits, raises, served,
             segments)
        )  # fmt: skip
        return base + len(self._rows) - 1

    def _index_of(self, task: int) -> int:
        """Of a task of an earlier piece: one of this piece that ends with it."""
        index = self._earlier.get(task)
        if index is None:
            index = self._earlier[task] = len(self._rows)
            self._task(EARLIER, 0, self.task_id(task), 0, ())
        return index

    def take_piece(self) -> Any:
        """The tasks so far, to be submitted next; then ``note_first_id`` tells what that gave."""
        if not self._rows:
            return None
        self._forget_ended()
        compiled = self._compile(self._rows)
        self._starts.append(self._base)
        self._pieces.append((0, compiled.offsets))
        self._base += len(self._rows)
        self._rows = []
        self._earlier = {}
        return compiled

    def _forget_ended(self) -> None:
        """Forget pieces whose tasks have all ended, so that a long program takes no more space."""
        while self._pieces and self._has_ended(*self._pieces[0]):
            self._ended_id = self._pieces.pop(0)[0]
            del self._starts[0]
        first = self._starts[0] if self._starts else self._base
        self._forget_before(first)

    def _has_ended(self, first_id: int, offsets: list[int]) -> bool:
        return all(self._is_complete(first_id + offset) for offset in reversed(offsets))

    def note_first_id(self, first_id: int) -> None:
        self._pieces[-1] = first_id, self._pieces[-1][1]

    def task_id(self, task: int) -> int:
        """The engine's id of a task that has been submitted."""
        piece = bisect_right(self._starts, task) - 1
        if piece < 0:
            return self._ended_id
        first_id, offsets = self._pieces[piece]
        return first_id + offsets[task - self._starts[piece]]
