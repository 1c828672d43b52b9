"""What an issuer remembers: its tasks in pieces, its values in the spaces of a PE.

Who takes space gets what was never used, then what was released, oldest release first; and with it
the tasks that must end before those bytes are free. So a loop of tiles goes round its memory as
round a ring of buffers.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.engine.core import EARLIER, NO_EFFECT, Block, Pairs, Row, Segments

NOTHING: Sequence[int] = ()
MANY_RELEASES = 1 << 16


class Space:
    """Accounting in bytes. Commands are issued in order, at most ``window`` of them under way, so
    of the uses of a value only the last ``window`` can still be going on when a later command takes
    its bytes.

    >>> tcm = Space(1024, window=64)
    >>> tcm.take(1024), tcm.free_bytes
    ((), 0)
    >>> tcm.give(768, uses=[3, 5])
    >>> tcm.take(512)
    [3, 5]
    """

    __slots__ = ("_fresh", "_released", "_window", "capacity_bytes", "free_bytes", "peak_bytes")

    def __init__(self, capacity_bytes: int, window: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.free_bytes = capacity_bytes
        self.peak_bytes = 0
        self._window = window
        self._fresh = capacity_bytes  # never used
        self._released: deque[tuple[int, Sequence[int]]] = deque()

    def take(self, num_bytes: int) -> Sequence[int]:
        """Tasks that must end before the bytes may be written. There has to be room."""
        self.free_bytes -= num_bytes
        fresh = self._fresh - num_bytes
        if fresh >= 0:
            self._fresh = fresh
            self.peak_bytes = max(self.peak_bytes, self.capacity_bytes - fresh)
            return NOTHING
        return self._reuse(-fresh)

    def _reuse(self, missing: int) -> list[int]:
        self.peak_bytes = self.capacity_bytes
        self._fresh = 0
        tasks: list[int] = []
        while missing > 0:
            released, uses = self._released.popleft()
            tasks += uses
            if released > missing:
                self._released.appendleft((released - missing, uses))
            missing -= released
        return tasks

    def give(self, num_bytes: int, uses: list[int], *, in_composite: bool = False) -> None:
        """The value is gone; its bytes are free when the commands that use them have ended.

        ``uses`` has one task for each command, in the order of issue. The parts of a composite are
        one command, and all of them may still be going on.
        """
        self.free_bytes += num_bytes
        kept = list(uses) if in_composite else uses[-self._window :]
        self._released.append((num_bytes, kept))

    def forget_ended(self, first_task: int) -> None:
        """Join the oldest of many releases, if all their uses are of tasks before this one.

        Such tasks have ended.
        """
        if len(self._released) < MANY_RELEASES:
            return
        num_bytes = 0
        while self._released and all(task < first_task for task in self._released[0][1]):
            num_bytes += self._released.popleft()[0]
        if num_bytes:
            self._released.appendleft((num_bytes, NOTHING))


UNTOUCHED = -1
MANY_USES = 4096


class IssuedValue:
    """Where a value lies, when it is there, and who uses it."""

    __slots__ = ("far_bytes", "near_bytes", "num_bytes", "task", "uses", "uses_before")

    def __init__(self, num_bytes: int, near_bytes: int, far_bytes: int, task: int) -> None:
        self.num_bytes = num_bytes
        self.near_bytes = near_bytes
        self.far_bytes = far_bytes
        self.task = task
        self.uses = [task]  # one for each command: of the last ones some may be under way
        self.uses_before = UNTOUCHED  # the composite that is open; then come those of its parts

    def note_use(self, task: int) -> None:
        """By a command whose part in the value ends with this task."""
        if self.uses[-1] != task:
            self.uses.append(task)

    def forget_uses(self, window: int) -> None:
        """Forget all but the last ``window`` of many uses, which have ended."""
        if len(self.uses) >= MANY_USES + window:
            del self.uses[:-window]


class OpenComposite:
    """A command that is told in parts: the issue of all, the ends of each, the values they use."""

    __slots__ = ("ends", "issue", "touched")

    def __init__(self, issue: int) -> None:
        self.issue = issue
        self.ends: list[int] = []
        self.touched: list[IssuedValue] = []


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
