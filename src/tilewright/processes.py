"""Cases that need nothing of each other, in processes of their own, so that all cores work."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from tilewright.errors import ProcessError

__all__ = ("in_processes", "memory_bytes", "num_cores")

Case = TypeVar("Case")
Result = TypeVar("Result")

FIX = "free memory, or ask for fewer"


def num_cores() -> int:
    """Of those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of this computer."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def in_processes(
    run: Callable[[Case], Result], cases: Sequence[Case], num_processes: int
) -> Iterator[tuple[Case, Result]]:
    """Each case with what ``run`` gives for it, as they end; they begin in their order.

    ``run`` may be a closure, which processes know from their birth; what it returns is pickled. The
    first error of a case, Ctrl-C, or the end of this process ends all of them. With one process,
    and where none can be forked, cases run here, one after the other.
    """
    num_processes = min(num_processes, len(cases))
    if num_processes > 1 and "fork" in multiprocessing.get_all_start_methods():
        yield from _forked(run, cases, num_processes)
    else:
        for case in cases:
            yield case, run(case)


def _forked(
    run: Callable[[Case], Result], cases: Sequence[Case], num_processes: int
) -> Iterator[tuple[Case, Result]]:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("fork")
    with _told_if_refused():
        pool = ProcessPoolExecutor(num_processes, context, initializer=_begin, initargs=(run,))
    pending: dict[Future[Result], Case] = {}
    with pool:
        try:
            with _told_if_refused(), _without_interrupts():  # that one who is half born would lose
                for case in cases:
                    pending[pool.submit(_run, case)] = case
            for done in as_completed(pending):
                yield pending[done], done.result()
        except BaseException as error:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
                child.join()
            if isinstance(error, BrokenProcessPool):
                raise _ended(error, pending) from error
            raise


def _ended(error: BrokenProcessPool, futures: Iterable[Future[Any]]) -> ProcessError:
    """Return an error that says why a process ended early, if the executor knows.

    A pool that breaks while cases are still submitted tells the reason to the futures alone.
    """
    causes = [error.__cause__, *(getattr(f.exception(), "__cause__", None) for f in futures)]
    reason = str(next(filter(None, causes), "")).strip("\n'").rpartition("\n")[2]
    found = f"one that ended early: {reason}" if reason else "one that was ended from outside"
    return ProcessError("processes", found, "processes that live until their cases end", FIX)


@contextmanager
def _told_if_refused() -> Iterator[None]:
    """By the system, that has no room for a process more."""
    try:
        yield
    except OSError as error:
        found = f"one that could not begin ({error.strerror or error})"
        raise ProcessError("processes", found, "processes that share the cases", FIX) from error


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C comes afterwards; processes that are born meanwhile leave it to their parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_run_case: Callable[[Any], Any]


def _begin(run: Callable[[Any], Any]) -> None:
    global _run_case  # noqa: PLW0603  # the executor hands cases on, not what runs them
    _run_case = run
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Else a process whose parent was killed would wait for its next case for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(case: Any) -> Any:
    return _run_case(case)
