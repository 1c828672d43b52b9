"""Decoding a model whose attention reads pages that a flow selects."""

from dataclasses import dataclass

from tilewright.attention.backends.reference import Counters, Session, SessionSpec, Step
from tilewright.attention.backends.reference.kept import prompt_windows
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.planner import PlanSpec
from tilewright.models import MlaShape, ModelShape, ModelWeights, Prompt, logits_of, run_layers
from tilewright.models.namespace import Array
from tilewright.models.prompt import StepWrapper

__all__ = ("FlowDecoder", "geometry_of", "kept_queries_of", "kv_heads_of")

REQUEST = "request"


def geometry_of(shape: ModelShape, page_size: int) -> Geometry:
    """What a flow is traced for. Keys, values and summaries are kept as the model computes them."""
    dtypes = dict.fromkeys(("kv_dtype", "query_dtype", "field_dtype"), DType.FLOAT32)
    if isinstance(shape, MlaShape):
        return Geometry.mla(
            page_size=page_size,
            kv_lora_rank=shape.kv_lora_rank,
            qk_rope_head_dim=shape.qk_rope_head_dim,
            query_heads=shape.query_heads,
            **dtypes,
        )
    return Geometry.gqa(
        page_size=page_size, head_dim=shape.head_dim, query_heads=shape.group, **dtypes
    )


def kv_heads_of(shape: ModelShape) -> int:
    return 1 if isinstance(shape, MlaShape) else shape.kv_heads


def kept_queries_of(graph: Graph) -> int:
    """How many of a prompt's last queries the flow wants to see."""
    return max(prompt_windows(graph), default=0)


@dataclass(frozen=True, slots=True)
class PagedStep:
    """The attention step of one decode step: write the token's pages, then let the flow choose."""

    step: Step

    def __call__(self, layer: int, queries: Array, keys: Array, values: Array | None) -> Array:
        self.step.write(layer, REQUEST, keys, values)
        return self.step.attend(layer, {REQUEST: queries})[REQUEST].output


class FlowDecoder:
    """One sequence behind a prompt. ``capacity`` tokens at most, the prompt's included.

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
            num_kv_heads=kv_heads_of(shape),
            num_pages=-(-capacity // graph.geometry.page_size),
            num_layers=shape.layers,
            scale=shape.attention_scale,
            plan=plan,
            rewind_window=0,
        )
        self._weights = weights
        self._around = around
        self._session = Session(graph, spec)
        self._geometry = graph.geometry
        self._num_tokens = len(prompt.tokens)
        self.pages_in_rows = 0
        """What dense attention would have read so far: pages of all rows of all steps."""
        self._take_prompt(prompt)

    @property
    def counters(self) -> Counters:
        return self._session.counters

    @property
    def page_bytes(self) -> int:
        """Stored bytes of a page's keys and values, in one layer and KV head."""
        return self._session.store.block_bytes(self._geometry.reserved_fields)

    def step(self, token: int) -> Array:
        """Take in a token; logits [vocab] of the one behind it."""
        step = self._session.begin({REQUEST: [token]})
        paged = PagedStep(step)
        attend = paged if self._around is None else self._around(paged)
        stream = run_layers(self._weights, [token], [self._num_tokens], attend)
        step.finish()
        self._num_tokens += 1
        rows = self._weights.shape.layers * kv_heads_of(self._weights.shape)
        self.pages_in_rows += rows * -(-self._num_tokens // self._geometry.page_size)
        return logits_of(self._weights, stream)[0]

    def _take_prompt(self, prompt: Prompt) -> None:
        self._session.admit(REQUEST, prompt.tokens)
        step = self._session.begin({REQUEST: prompt.tokens}, prompt=True)
        for layer in range(self._weights.shape.layers):
            attention = prompt.attention
            step.write(layer, REQUEST, attention.keys(layer), attention.values(layer))
            queries = attention.queries(layer)
            if queries is not None:
                step.observe(layer, REQUEST, queries)
        step.finish()
