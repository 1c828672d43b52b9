"""Quest: pages by an upper bound of their dot products.

M_P and m_P are the largest and smallest key (or latent) of page P, channel by channel.
bound_g(P) = sum_d max(q_gd M_Pd, q_gd m_Pd) >= q_g . k for every key k of P.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import Scored, ScoredFlow, ScoredFlowMLA
from tilewright.attention.indexer import AcrossHeads
from tilewright.attention.ops.page_axis import Kind

# ruff: noqa: ARG002 - methods of a flow have the signature that users know


class Bounded(Scored):
    """A flow that keeps the largest and smallest key of each page."""

    paper = "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference (2406.10774)"

    def key_fields(self, block_size: int, width: int) -> dict[str, tuple[int, int]]:
        return {"max": (1, width), "min": (1, width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["max"] = cache[self.keys].max(1)
        cache["min"] = cache[self.keys].min(1)

    def bounds(self, q: Value, cache: FieldMap) -> Value:
        """[S, heads of q, 1]"""
        return (q * cache["max"]).maximum(q * cache["min"]).sum(2)


@register("quest")
class Quest(Bounded, ScoredFlow):
    """score(P) = max_g bound_g(P)."""

    group = "max of bounds"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.bounds(q, cache).max(1)


@register("quest_mla")
class QuestMLA(Bounded, ScoredFlowMLA):
    """score(P) = bound(mean_h q_h, P)."""

    group = "mean of queries"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.bounds(q.mean(1), cache)


@register("gqa_quest_sparse_attention")
class GQAQuestSparseAttention(Quest):
    """score(P) = max_g sum_d max(q_gd M_Pd, q_gd m_Pd).

    Quest under the name that Vortex gives it.
    """


@register("quest_group_sum")
class QuestGroupSum(Quest):
    """score(P) = sum_g bound_g(P).

    As where heads share pages.
    """

    group = "sum of bounds"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.bounds(q, cache).sum(1)


@register("quest_mean_query")
class QuestMeanQuery(Quest):
    """score(P) = sum over KV heads of bound(mean_g q_g, P).

    One choice for all heads of a request.
    """

    group = "bound of the mean query, sum over KV heads"

    def __init__(self) -> None:
        super().__init__()
        self.over_heads = AcrossHeads(Kind.SUM)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.over_heads(self.bounds(q.mean(1), cache), ctx=ctx)


@register("masked_quest_sparse_attention")
class MaskedQuestSparseAttention(Quest):
    """score(P) = max_g of the bound on channels 8 and up."""

    MASK_END = 8

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        high, low = (cache[name][:, :, self.MASK_END :] for name in ("max", "min"))
        kept = q[:, :, self.MASK_END :]
        return (kept * high).maximum(kept * low).sum(2).max(1)


@register("mean_quest_blend")
class MeanQuestBlend(Quest):
    """score(P) = max_g (a <q_g, c_P> + (1 - a) bound_g(P)).

    Between what a page holds on average, c_P, and what it may hold at most; a = 0.5.
    """

    group = "max of blends"

    def __init__(self, mean_weight: float = 0.5) -> None:
        super().__init__()
        self.mean_weight = mean_weight

    def key_fields(self, block_size: int, width: int) -> dict[str, tuple[int, int]]:
        return {**super().key_fields(block_size, width), "centroids": (1, width)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["centroids"] = cache["k"].mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        mean = q @ cache["centroids"].T
        blend = self.mean_weight * mean + (1.0 - self.mean_weight) * self.bounds(q, cache)
        return blend.max(1)
