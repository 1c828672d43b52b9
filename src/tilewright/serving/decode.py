"""Decoding a model whose attention reads pages that a flow selects."""

from tilewright.attention.backends.reference import Counters, SessionSpec
from tilewright.attention.backends.reference.kept import prompt_windows
from tilewright.attention.graph import DType, Geometry, Graph
from tilewright.attention.planner import PlanSpec
from tilewright.models import MlaShape, ModelShape, ModelWeights, Prompt, logits_of, run_layers
from tilewright.models.dense import StepWrapper
from tilewright.models.weights import Array
from tilewright.serving.sequence import PagedSequence, PagedStep, PagesByRow


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
        self._sequence = PagedSequence(graph, spec, prompt.tokens, prompt.attention)
        self._last: PagedStep | None = None

    @property
    def counters(self) -> Counters:
        return self._sequence.counters

    @property
    def page_bytes(self) -> int:
        """Stored bytes of a page's keys and values, in one layer and KV head."""
        return self._sequence.page_bytes

    @property
    def pages_in_rows(self) -> int:
        """What dense attention would have read so far: pages of all rows of all steps."""
        return self._sequence.pages_in_rows

    @property
    def num_tokens(self) -> int:
        """The prompt's included."""
        return self._sequence.num_tokens

    @property
    def last_pages(self) -> PagesByRow:
        """What each layer read in the last step; nothing before the first one."""
        return () if self._last is None else self._last.pages()

    def step(self, token: int) -> Array:
        """Take in a token; logits [vocab] of the one behind it."""
        position = self._sequence.num_tokens
        with self._sequence.step(token) as paged:
            attend = paged if self._around is None else self._around(paged)
            stream = run_layers(self._weights, [token], [position], attend)
        self._last = paged
        return logits_of(self._weights, stream)[0]
