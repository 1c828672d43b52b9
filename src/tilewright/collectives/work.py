"""Calls that are under way: each is a program of the hub of its own, behind the one before it."""

from collections.abc import Callable, Sequence

from tilewright.errors import CollectiveError
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
                self._driver.hub.wait_signal(self._end_signal(), 1)
            else:
                self._driver.drive(until=self._program)
        return True

    def _end_signal(self) -> int:
        """Return the signal that is raised at the end."""
        if self._signal is None:
            name = f"end of {self._program.name} in program {self._program.number}"
            self._signal = self._driver.device.engine.add_signal(name)
        return self._signal

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
