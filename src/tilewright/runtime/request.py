"""Requests to a machine: what was asked, whether it is done, and how it went."""

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from tilewright.engine.hub_program import Program
from tilewright.errors import KernelError, RequestError, TilewrightError
from tilewright.executor.post import Post


@dataclass(frozen=True, slots=True)
class Completion:
    """How a request went; a failure has both a code and words, a success neither."""

    ok: bool
    completed_ps: int
    error_code: str | None = None  # the name of the error
    error_message: str | None = None


@dataclass(eq=False, slots=True)
class Request:
    """One request of a context, under way or done. A handle to wait with."""

    request_id: int  # unique in its context, counted from 0
    correlation_id: str  # of the context
    what: str  # in words: 'launch "softmax"'
    submitted_ps: int
    program: Program | None = field(repr=False)  # completes it; None: it is complete
    worker: int | None  # the program that submitted it; None: the host outside of all programs
    failures: list[TilewrightError] = field(default_factory=list, repr=False)
    completed_ps: int | None = None
    end_task: int = -1  # the engine's id of the task that ends it
    signal: int | None = None  # raised when it is complete, if a worker waits for it
    programs: Container[int] | None = None
    """The numbers of the hub's programs while a launch is under way; None: it is no launch."""
    rings: Post | None = None  # of a launch, if they end with it
    is_told: bool = False  # its failure was raised, or asked for
    listeners: list[Callable[[], None]] = field(default_factory=list, repr=False)
    """Called when it is complete, before who waits for it goes on."""

    @property
    def is_completed(self) -> bool:
        """In simulated time, whoever waited for it."""
        return self.completed_ps is not None

    @property
    def completion(self) -> Completion:
        """Only of one that is complete."""
        if self.completed_ps is None:
            found, expected = "one that is under way", "a complete request"
            raise RequestError(self._where, found, expected, "wait for it first")
        self.is_told = bool(self.failures)
        if not self.failures:
            return Completion(ok=True, completed_ps=self.completed_ps)
        first = self.failures[0]
        return Completion(
            ok=False,
            completed_ps=self.completed_ps,
            error_code=type(first).__name__,
            error_message=str(first),
        )

    def complete(self, now_ps: int) -> None:
        """Note that the request is over, tell its listeners, and keep how it went alone."""
        self.completed_ps = now_ps
        listeners, self.listeners = self.listeners, []
        for listener in listeners:
            listener()
        self.program = None
        if self.programs is not None:
            self.programs = ()

    def check(self) -> Completion:
        """Return how a complete request went; raise its failure."""
        completion = self.completion
        if not completion.ok:
            first = self.failures[0]
            if isinstance(first, KernelError):
                raise first
            found = f"{completion.error_code}: {completion.error_message}"
            raise RequestError(self._where, found, "a request that succeeds", first.fix) from first
        return completion

    @property
    def _where(self) -> str:
        return f"request {self.request_id} ({self.what})"
