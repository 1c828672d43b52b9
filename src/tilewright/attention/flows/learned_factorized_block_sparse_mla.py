"""Pages by a few learned descriptors for each query head.

A page with latents X keeps g_h = (Wt_h^T X) Wk_h, m descriptors of width r for head h;
score(P) = sum_h max_m <Wq_h^T q_h, g_hm>.
"""

from collections.abc import Mapping

import numpy.typing as npt

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.cache import LearnedDescriptor
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlowMLA
from tilewright.attention.flows.weights import Weights
from tilewright.attention.graph import Geometry
from tilewright.attention.indexer import FactorScore


@register("learned_factorized_block_sparse_mla")
class LearnedFactorizedBlockSparseMLA(ScoredFlowMLA):
    """score(P) = sum_h max_m <Wq_h^T q_h, g_hm>.

    Tables are ``query`` and ``key`` [layers, heads, latent, rank] and ``token`` [layers, heads,
    block size, descriptors].
    """

    paper = "a learned rule of Vortex (2606.06453)"
    group = "sum over heads of the best descriptor"

    def __init__(
        self,
        descriptors: int = 2,
        rank: int = 16,
        weights: Mapping[str, npt.ArrayLike] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.descriptors = descriptors
        self.rank = rank
        self.weights = Weights(weights, seed=seed)
        self.weights_label = self.weights.label
        self.num_heads = 1

    def initialize_for(self, geometry: Geometry) -> None:
        self.num_heads = geometry.query_heads  # descriptors are kept for each of them
        super().initialize_for(geometry)

    def create_cache(
        self, block_size: int, kv_lora_rank: int, qk_rope_head_dim: int
    ) -> dict[str, tuple[int, int]]:
        self.sizes = (block_size, kv_lora_rank + qk_rope_head_dim)
        return {"descriptors": (self.num_heads * self.descriptors, self.rank)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        block_size, width = self.sizes
        token = self.weights.by_head("token", self.num_heads, block_size, self.descriptors)
        key = self.weights.by_head("key", self.num_heads, width, self.rank)
        describe = LearnedDescriptor(token, key, self.num_heads, self.descriptors, self.rank)
        describe(cache["latent"], cache["descriptors"], loc=loc, ctx=ctx)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        query = self.weights.by_head("query", self.num_heads, q.shape[2], self.rank)
        factor = FactorScore(query, self.num_heads, self.descriptors, self.rank)
        score: Value = factor(q, cache["descriptors"], ctx=ctx)
        return score
