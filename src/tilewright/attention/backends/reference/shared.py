"""What a session holds, and its steps and rows work on."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tilewright.attention.backends.reference.counters import Counters
from tilewright.attention.backends.reference.evaluator import Evaluator
from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.spec import SessionSpec
from tilewright.attention.backends.reference.store import PoolStore
from tilewright.attention.graph import Graph, Op
from tilewright.attention.paging import Pager, PagerSnapshot, StateStore
from tilewright.errors import AttentionError

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Before:
    """What a layer kept of a request before it took in one more token."""

    num_tokens: int
    values: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class RequestProgress:
    """How far a request is."""

    steps: int = 0  # decode tokens that it has taken in
    first_decode: int = 0  # position of the first token after the last piece of prompt


@dataclass(frozen=True, slots=True)
class Suspended:
    """A request that gave its pages back: enough to go on later as if it had not."""

    tokens: tuple[int, ...]
    layers: Mapping[int, Mapping[str, Array]]
    progress: RequestProgress


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """Everything that can change in a session, but for the counters."""

    pager: PagerSnapshot
    store: tuple[Mapping[str, Array], ...]
    state: Mapping[tuple[str, int], Mapping[str, Array]]
    progress: Mapping[str, RequestProgress]
    journal: Mapping[tuple[str, int], tuple[Before, ...]]
    waiting: Mapping[str, Suspended]


@dataclass(frozen=True, slots=True)
class Shared:
    """Graph and sizes are fixed; pager, arrays, state, progress and counters change."""

    graph: Graph
    spec: SessionSpec
    namespace: Namespace
    pager: Pager
    store: PoolStore
    state: StateStore
    counters: Counters
    scale: float
    evaluators: Mapping[type[Op], Evaluator]
    progress: dict[str, RequestProgress] = field(default_factory=dict)
    waiting: dict[str, Suspended] = field(default_factory=dict)
    open_steps: dict[str, object] = field(default_factory=dict)  # the step that a request is in
    journal: dict[tuple[str, int], deque[Before]] = field(default_factory=dict)

    @property
    def num_kv_heads(self) -> int:
        return self.spec.num_kv_heads

    def remember(self, request: str, layer: int, num_tokens: int) -> None:
        """Note what is kept before the token at ``num_tokens``, for a rewind."""
        entries = self.journal.setdefault((request, layer), deque(maxlen=self.spec.rewind_window))
        entries.append(Before(num_tokens, self.state.layer(request, layer)))

    def rewind(self, request: str, num_tokens: int) -> None:
        """Put back what every layer kept before the token at ``num_tokens``, and forget later."""
        found = {}
        for layer in range(self.spec.num_layers):
            entries = self.journal.get((request, layer), deque())
            later = [entry for entry in entries if entry.num_tokens >= num_tokens]
            lost = later[0].num_tokens > num_tokens if later else not entries
            if lost and self.state.layer(request, layer):
                raise AttentionError(
                    f"request {request!r}",
                    f"a rewind to token {num_tokens}",
                    f"at most {self.spec.rewind_window} tokens back",
                    "build the session with a larger rewind_window",
                )
            if later:
                found[layer] = later[0]
        for layer, before in found.items():
            entries = self.journal[request, layer]
            while entries and entries[-1].num_tokens >= num_tokens:
                entries.pop()
            self.state.set_layer(request, layer, before.values)

    def copy_request(self, source: str, target: str) -> None:
        self.state.copy_request(source, target)
        self.progress[target] = self.progress[source]
        for name, layer in [key for key in self.journal if key[0] == source]:
            self.journal[target, layer] = deque(
                self.journal[name, layer], maxlen=self.spec.rewind_window
            )

    def forget(self, request: str) -> None:
        self.state.take_request(request)
        self.progress.pop(request, None)
        self.waiting.pop(request, None)
        self.open_steps.pop(request, None)
        for key in [key for key in self.journal if key[0] == request]:
            del self.journal[key]

    def wake(self, request: str) -> None:
        """Give a resumed request its state back once all of its tokens are there again."""
        suspended = self.waiting.get(request)
        table = self.pager.table(request)
        if suspended is not None and table.num_tokens >= len(suspended.tokens):
            del self.waiting[request]
            self.state.put_request(request, suspended.layers)
            self.progress[request] = suspended.progress

    def check_at_rest(self, *requests: str) -> None:
        """Refuse what would pull tokens from under a step; all requests by default."""
        for request in requests or tuple(self.open_steps):
            if request in self.open_steps:
                raise AttentionError(
                    f"request {request!r}",
                    "a step that has not ended",
                    "a request between steps",
                    "finish or cancel the step",
                )

    def snapshot(self) -> "SessionSnapshot":
        return SessionSnapshot(
            self.pager.snapshot(),
            self.store.snapshot(),
            self.state.snapshot(),
            dict(self.progress),
            {key: tuple(entries) for key, entries in self.journal.items()},
            dict(self.waiting),
        )

    def restore(self, snapshot: "SessionSnapshot") -> None:
        self.pager.restore(snapshot.pager)
        self.store.restore(snapshot.store)
        self.state.restore(snapshot.state)
        _replace(self.progress, snapshot.progress)
        _replace(self.waiting, snapshot.waiting)
        self.open_steps.clear()
        journal = {
            key: deque(entries, maxlen=self.spec.rewind_window)
            for key, entries in snapshot.journal.items()
        }
        _replace(self.journal, journal)


def _replace(target: dict[Key, Item], source: Mapping[Key, Item]) -> None:
    target.clear()
    target.update(source)
