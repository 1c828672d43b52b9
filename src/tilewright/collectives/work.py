"""Programs of the hub that act for ranks: workers, and calls that are under way.

The code of a worker takes no simulated time. A worker that waits is suspended; nobody but the
caller of `run` drives the clock. The first error of a worker ends all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from greenlet import GreenletExit, getcurrent, greenlet

from tilewright.engine.hub_program import Program
from tilewright.errors import CollectiveError, DeadlockError
from tilewright.runtime.driver import Driver


class Work:
    """A call of a rank that may be under way; ``wait`` before its tensors are used."""

    def __init__(
        self,
        driver: Driver,
        what: str,
        who: str,
        body: Callable[[], None],
        after: "Work | None" = None,
    ) -> None:
        """``after`` is the call whose rings it uses next; the body may wait."""
        self.what = what
        self._driver = driver
        self._before = after
        self._body: Callable[[], None] | None = body
        self._is_done = False
        self._program = driver.hub.spawn(self._run, name=f"{what} by {who}")
        self._signal: int | None = None  # raised when it is complete, if a worker waits for it

    def __repr__(self) -> str:
        return f"<Work {self.what}, {'complete' if self._is_done else 'under way'}>"

    def wait(self, timeout: object = None) -> bool:
        """Until it is complete, and results are where they belong; torch's timeout never ends."""
        del timeout
        if self._program.end_reason is not None:
            found = f"a call that ended with {self._program.end_reason}"
            fix = "make the call again, at all ranks of the group"
            raise CollectiveError(self.what, found, "a call that nothing has ended", fix)
        if not self._is_done:
            if self._driver.hub.is_inside:
                if self._signal is None:
                    name = f"end of {self._program.name} in program {self._program.number}"
                    self._signal = self._driver.device.engine.add_signal(name)
                self._driver.hub.wait_signal(self._signal, 1)
            else:
                self._driver.drive(until=self._program)
        return True

    def is_completed(self) -> bool:
        """In simulated time."""
        return self._is_done

    def is_success(self) -> bool:
        """A call that fails ends the run, so one that is complete has succeeded."""
        return self._is_done

    def _run(self) -> None:
        if self._before is not None:
            self._before.wait()
            self._before = None
        if self._body is not None:
            self._body()
        self._body = None  # it keeps tensors
        self._is_done = True
        if self._signal is not None:
            engine = self._driver.device.engine
            engine.raise_signal(self._signal)
            engine.remove_signal(self._signal)


class JointWork:
    """One call of all ranks, made outside of workers."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._works = tuple(works)

    def wait(self, timeout: object = None) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return self.is_completed()


MIN_DIFFERENT = 2  # calls that ranks are in when they have lost each other


class RankCall(Protocol):
    """A call of a rank that may be under way, as the report of ranks that wait names it."""

    @property
    def what(self) -> str:
        """The call in words."""

    def is_completed(self) -> bool:
        """Return whether nobody waits for it any more."""


class Workers:
    """Who runs now, and which rank that is."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._ranks: WeakKeyDictionary[greenlet, int] = WeakKeyDictionary()
        self._programs: list[Program] = []  # of the run that is under way
        self._calls: dict[int, list[RankCall]] = {}  # by rank, those that may be under way
        self.num_runs = 0

    @property
    def rank(self) -> int | None:
        """Of the calling worker; None outside of workers."""
        return self._ranks.get(getcurrent())

    @property
    def num_workers(self) -> int:
        """Of the run that is under way; 0: none."""
        return len(self._programs)

    def note_call(self, call: RankCall) -> None:
        """Record a call of the calling rank; the report of ranks that wait for ever names it."""
        if self.rank is not None:
            others = [each for each in self._calls.get(self.rank, ()) if not each.is_completed()]
            self._calls[self.rank] = [*others, call]

    def run(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        num_workers: int,
        ended_by: type[BaseException] = GreenletExit,
    ) -> tuple[Any, ...]:
        """Call ``function(rank, *args)`` in a worker for each rank; return what they returned.

        When a worker fails, ``ended_by`` is raised in the waits of all others.
        """
        if self._driver.hub.is_inside:
            found = f"a start of {num_workers} workers by rank {self.rank}"
            fix = "start all of them from the main program"
            raise CollectiveError("spawn", found, "one set of workers", fix)
        if type(num_workers) is not int or num_workers < 1:
            raise CollectiveError("spawn", f"nprocs={num_workers!r}", "at least 1", "correct it")
        hub, engine = self._driver.hub, self._driver.device.engine
        self.num_runs += 1
        ended = engine.add_signal(f"workers of run {self.num_runs} that have ended")

        def work(rank: int) -> Any:
            self._ranks[getcurrent()] = rank
            try:
                result = function(rank, *args)
            except Exception as error:
                error.add_note(f"in rank {rank} of {num_workers}")
                raise
            engine.raise_signal(ended)
            return result

        workers = [hub.spawn(work, rank, name=f"rank {rank}") for rank in range(num_workers)]
        for worker in workers:
            worker.ended_by = ended_by
        all_ended = hub.spawn(hub.wait_signal, ended, num_workers, name="the end of all ranks")
        self._programs = workers
        try:
            self._driver.drive(until=all_ended)
        except DeadlockError as error:
            self._explain(error)
            raise
        finally:
            self._programs, self._calls = [], {}
        engine.remove_signal(ended)
        return tuple(worker.result for worker in workers)

    def _explain(self, error: DeadlockError) -> None:
        """Raise a CollectiveError that names the calls of ranks which others never make.

        Return if no rank waits in a call: the deadlock's own report names the kernels then.
        """
        ended = [rank for rank, program in enumerate(self._programs) if program.is_done]
        waiting = {
            rank: [call.what for call in self._calls.get(rank, ()) if not call.is_completed()]
            for rank in range(len(self._programs))
            if rank not in ended
        }
        calls = {text for texts in waiting.values() for text in texts}
        if not calls or (not ended and len(calls) < MIN_DIFFERENT):
            return
        told = [
            f"rank {rank} waits in {', '.join(texts) or 'a launch or transfer of its own'}"
            for rank, texts in waiting.items()
        ]
        told += [f"rank {rank} has ended" for rank in ended]
        fix = "let all ranks of a group make the same calls in the same order"
        raise CollectiveError("spawn", "; ".join(told), "ranks that meet", fix) from error
