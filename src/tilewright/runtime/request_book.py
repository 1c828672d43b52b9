"""The requests of a context: which are under way, and which of the past are kept."""

from collections import deque
from collections.abc import Iterator

from tilewright.runtime.request import Request

MAX_SUCCEEDED = 1024  # that are kept


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
