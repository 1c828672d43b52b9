"""Space of a PE that programs take and give back while their commands are still under way.

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
