"""What a session is built for and shares with its steps and rows."""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.op.frame import Counters, Evaluator
from tilewright.attention.backends.reference.store import PoolStore
from tilewright.attention.graph import FlowKind, Geometry, Graph, Op
from tilewright.attention.paging import Pager, StateStore
from tilewright.attention.planner import PlanSpec
from tilewright.errors import AttentionError


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """Sizes of the model and of the pool, and how a step is planned.

    ``scale`` of logits is 1/sqrt(key_dim) by default; a model with absorbed queries (MLA) states
    its own. A selection serves ``update_interval`` steps. State can be rewound by as many tokens
    as ``rewind_window`` says.
    """

    num_kv_heads: int
    num_pages: int
    num_layers: int = 1
    blocks_per_page: int = 1
    scale: float | None = None
    plan: PlanSpec = field(default_factory=PlanSpec)
    update_interval: int = 1
    rewind_window: int = 16

    def __post_init__(self) -> None:
        for name in ("num_kv_heads", "num_layers", "blocks_per_page", "update_interval"):
            if (value := getattr(self, name)) < 1:
                raise AttentionError(f"session.{name}", str(value), ">= 1", "raise it")
        if self.rewind_window < 0:
            where, found = "session.rewind_window", str(self.rewind_window)
            raise AttentionError(where, found, ">= 0", "raise it")

    def scale_for(self, geometry: Geometry) -> float:
        if geometry.kind is FlowKind.MLA and self.num_kv_heads != 1:
            where, found = "session.num_kv_heads", str(self.num_kv_heads)
            expected = "1 under MLA: all query heads share one latent"
            raise AttentionError(where, found, expected, "put them in query_heads")
        return 1.0 / math.sqrt(geometry.key_dim) if self.scale is None else self.scale


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

    pager: Pager
    store: tuple[Mapping[str, Array], ...]
    state: Mapping[tuple[str, int], Mapping[str, Array]]
    progress: Mapping[str, RequestProgress]
    journal: Mapping[tuple[str, int], tuple[Before, ...]]
    waiting: Mapping[str, Suspended]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shared:
    """What a session has in common with its steps and rows.

    Graph and sizes are fixed; pager, arrays, what is kept, progress and counters change.
    """

    graph: Graph
    spec: SessionSpec
    namespace: Namespace
    pager: Pager
    store: PoolStore
    kept: StateStore
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
        entries.append(Before(num_tokens, self.kept.layer(request, layer)))

    def take_back(self, request: str, num_tokens: int) -> None:
        """Take back the tokens from ``num_tokens`` on; every layer keeps what it kept before."""
        found = {}
        for layer in range(self.spec.num_layers):
            entries = self.journal.get((request, layer), deque())
            later = [entry for entry in entries if entry.num_tokens >= num_tokens]
            lost = later[0].num_tokens > num_tokens if later else not entries
            if lost and self.kept.layer(request, layer):
                what = f"a rewind to token {num_tokens}"
                expected = f"at most {self.spec.rewind_window} tokens back"
                fix = "build the session with a larger rewind_window"
                raise request_error(request, what, expected, fix)
            if later:
                found[layer] = later[0]
        for layer, before in found.items():
            entries = self.journal[request, layer]
            while entries and entries[-1].num_tokens >= num_tokens:
                entries.pop()
            self.kept.set_layer(request, layer, before.values)
        self.pager.truncate(request, num_tokens)

    def wake(self, request: str) -> None:
        """Give a resumed request its state back once all of its tokens are there again."""
        suspended = self.waiting.get(request)
        table = self.pager.table(request)
        if suspended is not None and table.num_tokens >= len(suspended.tokens):
            del self.waiting[request]
            self.kept.put_request(request, suspended.layers)
            self.progress[request] = suspended.progress

    def check_at_rest(self, *requests: str) -> None:
        """Refuse what would pull tokens from under a step; all requests by default."""
        for request in requests or tuple(self.open_steps):
            if request in self.open_steps:
                found, fix = "a step that has not ended", "finish or cancel the step"
                raise request_error(request, found, "a request between steps", fix)


def request_error(request: str, found: str, expected: str, fix: str) -> AttentionError:
    """Return the error for a call about a request."""
    return AttentionError(f"request {request!r}", found, expected, fix)
