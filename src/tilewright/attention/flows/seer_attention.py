"""A learned gate on pooled keys.

K'_P = Wk [max; min; mean of the keys of P], Q' = Wq q_flat merges the group,
score(P) = Q' . K'_P. The plan's number of pages is read, or with a ``threshold`` those whose share
softmax(score / sqrt(d)) among the middle pages reaches it. The published gate pools keys before
their rotation; this one pools them as they are cached.
"""

import math
from collections.abc import Mapping

import numpy.typing as npt

from tilewright.attention.abs import ContextBase, FieldMap, OutputSlot, Value
from tilewright.attention.cache import Concat
from tilewright.attention.cache import GeMM as CacheGeMM
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow
from tilewright.attention.flows.weights import Weights
from tilewright.attention.indexer import GeMM

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("seer_attention")
class SeerAttention(ScoredFlow):
    """score(P) = Q' . K'_P.

    Tables: ``query`` [d, H * D] and ``key`` [d, 3 D].
    """

    paper = "SeerAttention-R: Sparse Attention Adaptation for Long Reasoning (2506.08889)"
    group = "learned merge of queries"

    def __init__(
        self,
        gate_width: int = 128,
        threshold: float | None = None,
        weights: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.gate_width = gate_width
        self.threshold = threshold
        self.weights = Weights(weights, seed=seed)
        self.weights_label = self.weights.label
        self.product = GeMM()

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        self.width = head_dim
        return {"gate_key": (1, self.gate_width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        keys = cache["k"]
        pooled = Concat(dim=2)(keys.max(1), keys.min(1), keys.mean(1), ctx=ctx)
        table = self.weights.matrix("key", self.gate_width, 3 * self.width)
        cache["gate_key"] = CacheGeMM()(pooled, table, None, ctx=ctx).T

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        size = q.shape[1] * q.shape[2]
        table = self.weights.matrix("query", self.gate_width, size)
        merged: Value = self.product(q.reshape(1, size), table)
        return cache["gate_key"] @ merged

    def forward_indexer(self, q: Value, o: OutputSlot, cache: FieldMap, ctx: ContextBase) -> None:
        score = self.score(q, cache, ctx)
        if self.threshold is None:
            o.select(score.topk())
        else:
            shares = score.softmax(dim=0, scale=1.0 / math.sqrt(self.gate_width))
            o.select(shares.threshold(self.threshold))
