"""Cases that need nothing of each other, in processes of their own, so that all cores work."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from traceback import format_exception
from typing import Any, TypeVar

from tilewright.errors import ProcessError

__all__ = ("in_processes", "memory_bytes", "num_cores")

Case = TypeVar("Case")
Result = TypeVar("Result")

END = -1  # in place of the index of a case
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
    waiting = iter(range(len(cases)))
    workers: dict[Connection, _Worker] = {}
    try:
        try:
            with _without_interrupts():  # that one who is half born would lose
                for index in islice(waiting, num_processes):
                    worker = _start(run, cases, index)
                    workers[worker.connection] = worker
        except OSError as error:  # the system has no room for a process more
            found = f"one that could not begin ({error.strerror or error})"
            raise ProcessError("processes", found, "processes that share the cases", FIX) from error
        while workers:
            for connection in wait(list(workers)):
                worker = workers[connection]  # type: ignore[index]  # wait gives what it was given
                case, result = cases[worker.index], _result_of(worker)
                worker.begin(next(waiting, END))
                if worker.index == END:
                    del workers[worker.connection]
                    worker.process.join()
                yield case, result
    finally:
        for worker in workers.values():
            worker.process.terminate()
            worker.process.join()


@dataclass(slots=True)
class _Worker:
    """A forked process, the pipe to it, and the index of the case that it runs."""

    process: BaseProcess
    connection: Connection
    index: int

    def begin(self, index: int) -> None:
        """Send the index of the next case to the process, or END."""
        self.index = index
        with suppress(ConnectionError):  # a process that was ended is seen at the next result
            self.connection.send(index)


def _start(run: Callable[[Case], Result], cases: Sequence[Case], index: int) -> _Worker:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(run, cases, index, there, here))
    process.start()
    there.close()
    return _Worker(process, here, index)


def _result_of(worker: _Worker) -> Any:
    """Receive the result of a worker's case, or raise the error of the case."""
    try:
        result, error = worker.connection.recv()
    except (EOFError, ConnectionError) as end:
        raise _ended_early("one that was ended from outside") from end
    except Exception as unreadable:  # anything may be raised by what restores a pickled object
        reason = f"{type(unreadable).__name__}: {unreadable}"
        raise _ended_early(f"one whose result cannot be read: {reason}") from unreadable
    if error is not None:
        raise error
    return result


def _ended_early(found: str) -> ProcessError:
    return ProcessError("processes", found, "processes that return the results of their cases", FIX)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Ctrl-C comes afterwards; processes that are born meanwhile leave it to their parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(
    run: Callable[[Case], Result],
    cases: Sequence[Case],
    index: int,
    connection: Connection,
    parents_end: Connection,
) -> None:
    """Run cases in a forked process, each index as the parent sends it, until it sends END."""
    parents_end.close()
    Thread(target=_end_with_parent, daemon=True).start()
    while index != END:
        try:
            answer = ForkingPickler.dumps((run(cases[index]), None))
        except BaseException as error:  # noqa: BLE001  # the parent raises it
            error.add_note("".join(format_exception(error)))  # frames are not pickled
            answer = ForkingPickler.dumps((None, error))
        connection.send_bytes(answer)
        index = connection.recv()


def _end_with_parent() -> None:
    """Else a process whose parent was killed would wait for its next case for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
