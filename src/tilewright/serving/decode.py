"""Decoding a model whose attention reads pages that a flow selects, layer by layer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tilewright.attention.backends.reference import Counters, Session, SessionSpec, Step, StepOutput
from tilewright.attention.backends.reference.session import model_geometry
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.ops.leaf import prompt_windows
from tilewright.attention.planner import PlanSpec
from tilewright.models import ModelShape, ModelWeights, Prompt, logits_of, run_layers
from tilewright.models.dense import StepWrapper
from tilewright.models.weights import Array

REQUEST = "request"
PagesByRow: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""Pages by layer and KV head."""


class KeptAttention(Protocol):
    """What dense attention over a prompt leaves behind; arrays are [tokens, heads, ...]."""

    def keys(self, layer: int) -> Array: ...

    def values(self, layer: int) -> Array | None: ...

    def queries(self, layer: int) -> Array | None:
        """Of the last tokens, as many as a flow may want to see; None: none are kept."""


@dataclass(frozen=True, slots=True)
class PagedStep:
    """The attention step of one decode step: write the token's pages, then let the flow choose."""

    step: Step
    taken: dict[int, StepOutput] = field(default_factory=dict)
    """What each layer read and gave, once it was asked."""

    def __call__(self, layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
        self.step.write(layer, REQUEST, keys, values)
        self.taken[layer] = self.step.attend(layer, {REQUEST: queries})[REQUEST]
        return self.taken[layer].output

    def pages(self) -> PagesByRow:
        """That each layer read in each KV head, ascending; once all layers were asked."""
        return tuple(
            tuple(tuple(map(int, out.pages(0, head))) for head in range(out.output.shape[1]))
            for _, out in sorted(self.taken.items())
        )


class PagedSequence:
    """Behind a prompt that dense attention took in. Its pages are copies of the prompt's keys."""

    def __init__(
        self, graph: Graph, spec: SessionSpec, tokens: Sequence[int], prompt: KeptAttention
    ) -> None:
        self._session = Session(graph, spec)
        self._spec = spec
        self._geometry = graph.geometry
        self.num_tokens = len(tokens)
        self.pages_in_rows = 0
        """What dense attention would have read so far: pages of all rows of all steps."""
        self._session.admit(REQUEST, tokens)
        step = self._session.begin({REQUEST: tokens}, prompt=True)
        for layer in range(spec.num_layers):
            step.write(layer, REQUEST, prompt.keys(layer), prompt.values(layer))
            queries = prompt.queries(layer)
            if queries is not None:
                step.observe(layer, REQUEST, queries)
        step.finish()

    @property
    def counters(self) -> Counters:
        return self._session.counters

    @property
    def page_bytes(self) -> int:
        """Stored bytes of a page's keys and values, in one layer and KV head."""
        return self._session.store.block_bytes(self._geometry.reserved_fields)

    @contextmanager
    def taking(self, token: int) -> Iterator[PagedStep]:
        """Take in a token: inside, every layer is to be called once."""
        step = self._session.begin({REQUEST: [token]})
        yield PagedStep(step)
        step.finish()
        self.num_tokens += 1
        rows = self._spec.num_layers * self._spec.num_kv_heads
        self.pages_in_rows += rows * -(-self.num_tokens // self._geometry.page_size)


def geometry_of(shape: ModelShape, page_size: int) -> Geometry:
    """What a flow is traced for. Keys, values and summaries are kept as the model computes them."""
    dtypes = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
    return model_geometry(shape, page_size, **dtypes)


def kept_queries_of(graph: Graph) -> int:
    """How many of a prompt's last queries the flow wants to see."""
    return max(prompt_windows(graph), default=0)


class FlowDecoder(PagedSequence):
    """A model on one sequence behind a prompt. ``capacity`` tokens at most, the prompt's included.

    ``around`` must be what the prompt was run with, in the state that it left.
    """

    def __init__(
        self,
        weights: ModelWeights,
        graph: Graph,
        plan: PlanSpec,
        prompt: Prompt,
        *,
        capacity: int,
        around: StepWrapper | None = None,
    ) -> None:
        shape = weights.shape
        spec = SessionSpec(
            num_kv_heads=shape.kv_heads,
            num_pages=-(-capacity // graph.geometry.page_size),
            num_layers=shape.layers,
            scale=shape.attention_scale,
            plan=plan,
            rewind_window=0,
        )
        self._weights = weights
        self._around = around
        super().__init__(graph, spec, prompt.tokens, prompt.attention)
        self._last: PagedStep | None = None

    @property
    def last_pages(self) -> PagesByRow:
        """What each layer read in the last step; nothing before the first one."""
        return () if self._last is None else self._last.pages()

    def step(self, token: int) -> Array:
        """Take in a token; logits [vocab] of the one behind it."""
        position = self.num_tokens
        with self.taking(token) as paged:
            attend = paged if self._around is None else self._around(paged)
            stream = run_layers(self._weights, [token], [position], attend)
        self._last = paged
        return logits_of(self._weights, stream)[0]
