"""Workers: the ranks of a program as programs of the hub, each with its own place.

Their code takes no simulated time. A worker that waits is suspended; nobody but the caller of
`run_workers` drives the clock. The first error of a worker ends all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from greenlet import getcurrent, greenlet

from tilewright.errors import CollectiveError
from tilewright.runtime.driver import Driver

__all__ = ("Workers",)


class Workers:
    """Who runs now, and which rank that is."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._ranks: WeakKeyDictionary[greenlet, int] = WeakKeyDictionary()
        self._num_workers = 0

    @property
    def rank(self) -> int | None:
        """Of the calling worker; None outside of workers."""
        return self._ranks.get(getcurrent())

    @property
    def num_workers(self) -> int:
        """Of the run that is under way; 0: none."""
        return self._num_workers

    def run(
        self, function: Callable[..., Any], args: Sequence[Any], num_workers: int
    ) -> tuple[Any, ...]:
        """Call ``function(rank, *args)`` in a worker for each rank; what they returned."""
        if self._driver.hub.is_inside:
            found = f"a start of {num_workers} workers by rank {self.rank}"
            fix = "start all of them from the main program"
            raise CollectiveError("spawn", found, "one set of workers", fix)
        if type(num_workers) is not int or num_workers < 1:
            raise CollectiveError("spawn", f"nprocs={num_workers!r}", "at least 1", "correct it")
        hub, engine = self._driver.hub, self._driver.device.engine
        ended = engine.add_signal("workers that have ended")

        def work(rank: int) -> Any:
            self._ranks[getcurrent()] = rank
            result = function(rank, *args)
            engine.raise_signal(ended)
            return result

        workers = [hub.spawn(work, rank, name=f"rank {rank}") for rank in range(num_workers)]
        all_ended = hub.spawn(hub.wait_signal, ended, num_workers, name="the end of all ranks")
        self._num_workers = num_workers
        try:
            self._driver.drive(until=all_ended)
        finally:
            self._num_workers = 0
        return tuple(worker.result for worker in workers)
