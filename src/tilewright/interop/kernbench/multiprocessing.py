"""Workers of KernBench programs: ``kernbench.runtime_api.multiprocessing``."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from tilewright.errors import ProgramError, TilewrightError
from tilewright.host import RuntimeContext as HostContext
from tilewright.interop.foreign_names import LIBRARY


class SpawnException(ProgramError):  # noqa: N818  # KernBench's name
    """Workers that failed: ``errors`` has the root cause of each rank that raised one."""

    def __init__(self, errors: Mapping[int, BaseException]) -> None:
        self.errors = dict(errors)
        found = "; ".join(f"rank {rank}: {_told(error)}" for rank, error in self.errors.items())
        super().__init__("spawn", found, "workers that run to their end", "correct the program")
        self.args = (self.errors,)


class Multiprocessing:
    """``torch.multiprocessing``: a worker a rank, all in one process."""

    def __init__(self, host: HostContext) -> None:
        self._host = host
        _latest["made"] = self

    def spawn(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
    ) -> None:
        """Call ``fn(rank, *args)`` in ``nprocs`` workers and wait for all of them.

        Workers take no simulated time of their own. The first error ends all workers, whose waits
        raise SystemExit, and is raised as a SpawnException. There are always as many workers as are
        asked for: KernBench's early launcher fell back to one.
        """
        errors: dict[int, BaseException] = {}

        def work(rank: int, *given: Any) -> Any:
            try:
                return fn(rank, *given)
            except Exception as error:
                if not errors:  # later ones are consequences of the first
                    errors[rank] = error
                raise

        try:
            self._host.multiprocessing.spawn(
                work, args, nprocs, join, daemon, start_method, ended_by=SystemExit
            )
        except Exception as error:
            if not errors:  # nobody's own: workers that wait for each other
                raise
            raise SpawnException(errors) from error


_latest = WeakValueDictionary[str, Multiprocessing]()  # of the context that was made last


def spawn(fn: Callable[..., Any], args: Sequence[Any] = (), *options: Any, **named: Any) -> None:
    """Call ``fn(rank, *args)`` in workers of the context among ``args``, or of the newest one.

    Other arguments are those of `Multiprocessing.spawn`.
    """
    given = [getattr(each, "multiprocessing", None) for each in args]
    found = [each for each in given if isinstance(each, Multiprocessing)]
    found += _latest.values()
    if not found:
        fix = "make a RuntimeContext first, or call torch.multiprocessing.spawn"
        raise ProgramError("spawn", "no runtime context", "one whose workers these are", fix)
    found[0].spawn(fn, args, *options, **named)


def _told(error: BaseException) -> str:
    """Return an error in one line, with the line of the user's file that it came through."""
    text = str(error) if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
    lines = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(LIBRARY)
    ]
    return f"{lines[-1]}, {text}" if lines and lines[-1] not in text else text
