"""``torch.multiprocessing``: workers of one program, a rank each."""

from collections.abc import Callable, Sequence
from typing import Any

from greenlet import GreenletExit

from tilewright.collectives.work import Workers
from tilewright.errors import CollectiveError


class Multiprocessing:
    """One process, one program of the hub for each rank."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def spawn(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
        *,
        ended_by: type[BaseException] = GreenletExit,
    ) -> None:
        """Call ``fn(rank, *args)`` for every rank and wait for all of them.

        ``daemon`` and ``start_method`` are torch's, and about processes: here all workers share
        one. When a worker fails, ``ended_by`` is raised in the waits of all others.
        """
        del daemon, start_method
        if not join:
            fix = "leave join out; what a program does beside its workers it does before or after"
            raise CollectiveError("spawn", "join=False", "workers that are waited for", fix)
        self.workers.run(fn, args, nprocs, ended_by)
