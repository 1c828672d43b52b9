"""The lightning indexer of DeepSeek sparse attention: every token has a small index key.

I_s = sum_j w_j relu(q^I_j . k^I_s) over index heads j, with q^I = Wq q_flat, w = Ww q_flat and
k^I_s = Wk latent_s. With pages of one token this is the published rule; a larger page is as good as
its best token.
"""

from collections.abc import Mapping

import numpy.typing as npt

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.cache import GeMM as CacheGeMM
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA
from tilewright.attention.flows.weights import Weights
from tilewright.attention.indexer import GeMM

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


@register("dsa")
class DSA(ScoredFlowMLA):
    """score(P) = max over tokens s of P of sum_j w_j relu(q_j . k_s).

    Tables: ``query`` [index heads * index width, heads * latent], ``head`` [index heads, heads *
    latent], ``key`` [index width, latent].
    """

    paper = "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention"
    group = "learned index heads"

    def __init__(
        self,
        index_heads: int = 64,
        index_width: int = 128,
        weights: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.index_heads = index_heads
        self.index_width = index_width
        self.weights = Weights(weights, seed=seed)
        self.weights_label = self.weights.label
        self.product = GeMM()

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        self.width = kv_lora_rank + qk_rope_head_dim
        return {"index_keys": (block_size, self.index_width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        table = self.weights.matrix("key", self.index_width, self.width)
        cache["index_keys"] = CacheGeMM()(cache["latent"], table, None, ctx=ctx).T

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        size = q.shape[1] * q.shape[2]
        flat = q.reshape(1, size)
        query_table = self.weights.matrix("query", self.index_heads * self.index_width, size)
        queries = self.product(flat, query_table).reshape(self.index_heads, self.index_width)
        weights: Value = self.product(flat, self.weights.matrix("head", self.index_heads, size)).T
        index: Value = ((cache["index_keys"] @ queries.T).relu() * weights).sum(2)
        return index.max(1)
