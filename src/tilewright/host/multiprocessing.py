"""``torch.multiprocessing``: workers of one program, a rank each."""

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.collectives.worker import Workers

__all__ = ("Multiprocessing",)


class Multiprocessing:
    """One process, one program of the hub for each rank."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def spawn(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
    ) -> None:
        """Call ``fn(rank, *args)`` for every rank and wait for all of them.

        The last three are torch's; workers are always joined, and share one process.
        """
        _ = join, daemon, start_method
        self._workers.run(fn, args, nprocs)
