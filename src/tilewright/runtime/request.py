"""Requests to a machine: what was asked, whether it is done, and how it went."""

from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from tilewright.engine.hub_program import Program
from tilewright.errors import KernelError, RequestError, TilewrightError
from tilewright.executor.post import Post
from tilewright.executor.run import Counters
from tilewright.machine.coords import PeCoord

MAX_SUCCEEDED = 1024  # that are kept


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
        return Completion(False, self.completed_ps, type(first).__name__, str(first))

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


class RequestBook:
    """Requests by their ids, which count from 0.

    Requests under way and those that failed are kept, and of all others the last
    ``MAX_SUCCEEDED`` (ADR 0034). A handle that somebody holds stays what it is.
    """

    def __init__(self) -> None:
        self._requests: dict[int, Request] = {}
        self._succeeded: deque[int] = deque()  # ids, in the order of completion
        self._open: dict[int | None, dict[int, Request]] = {}
        """By worker: requests that are under way, or have failed and nobody was told."""
        self.num_requests = 0  # so far
        self.first_ps = 0  # when the first of them was submitted

    def __getitem__(self, request_id: int) -> Request:
        return self._requests[request_id]

    def __iter__(self) -> Iterator[Request]:
        """Yield the requests that are kept, in the order of submission."""
        return iter(self._requests.values())

    def add(self, request: Request) -> None:
        """Add a new request, whose id is the number of those so far."""
        if not self.num_requests:
            self.first_ps = request.submitted_ps
        self.num_requests += 1
        self._requests[request.request_id] = request
        self._open.setdefault(request.worker, {})[request.request_id] = request

    def open_requests(self, worker: int | None) -> list[Request]:
        """Return the requests of a worker that are under way, or failed and nobody was told."""
        return list(self._open.get(worker, {}).values())

    def all_open(self) -> list[Request]:
        """Return the requests of all workers that are under way, or failed and nobody was told."""
        return [each for by_id in self._open.values() for each in by_id.values()]

    def note_told(self, request: Request) -> None:
        """Wait for a request no more: it has succeeded, or somebody knows of its failure."""
        of_worker = self._open.get(request.worker, {})
        of_worker.pop(request.request_id, None)
        if not of_worker:
            self._open.pop(request.worker, None)

    def note_success(self, request: Request) -> None:
        """Note that a request has succeeded; the oldest one that has makes way."""
        self.note_told(request)
        self._succeeded.append(request.request_id)
        if len(self._succeeded) > MAX_SUCCEEDED:
            del self._requests[self._succeeded.popleft()]


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """Times are of the context's clock. A launch without programs starts and ends at one time."""

    name: str
    kernel: str
    grid: tuple[int, ...]
    num_programs: int
    pes: tuple[PeCoord, ...]  # that ran programs
    submitted_ps: int
    first_start_ps: int  # the first PE has the command
    last_start_ps: int
    last_end_ps: int  # the last command of the last PE is complete
    completed_ps: int  # the host knows
    last_pe: PeCoord | None  # that ends last, the lowest of them; None: no programs
    last_owner: int | None  # the engine's number of what ended last on it
    counters: Counters = field(repr=False)
    longest_pe_ps: int = 0  # of all PEs, the longest time from a PE's start to its end

    @property
    def dispatch_ps(self) -> int:
        """From the host to the first PE."""
        return self.first_start_ps - self.submitted_ps

    @property
    def execution_ps(self) -> int:
        """From the first start to the last end."""
        return self.last_end_ps - self.first_start_ps

    @property
    def completion_ps(self) -> int:
        """From the last end to the host."""
        return self.completed_ps - self.last_end_ps

    @property
    def latency_ps(self) -> int:
        return self.completed_ps - self.submitted_ps

    @property
    def skew_ps(self) -> int:
        """Between the first and the last PE that starts."""
        return self.last_start_ps - self.first_start_ps
