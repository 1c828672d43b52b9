"""Where the values of a PE's programs lie: space that they take and give back, and its uses.

Who takes space gets what was never used, then what was released, oldest release first; and with it
the tasks that must end before those bytes are free. So a loop of tiles goes round its memory as
round a ring of buffers.
"""

from collections import deque
from collections.abc import Sequence

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
