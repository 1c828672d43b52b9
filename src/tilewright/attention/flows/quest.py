"""Pages by an upper bound of their dot products, the largest of the group.

M_P and m_P are the largest and smallest key of page P, channel by channel.
bound_g(P) = sum_d max(q_gd M_Pd, q_gd m_Pd) >= q_g . k for every key k of P.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("Quest",)


@register("quest")
class Quest(ScoredFlow):
    """score(P) = max_g bound_g(P)."""

    paper = "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference (2406.10774)"
    group = "max of bounds"

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {"max": (1, head_dim), "min": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["max"] = cache["k"].max(1)
        cache["min"] = cache["k"].min(1)

    def bounds(self, q: Value, cache: FieldMap) -> Value:
        """[S, heads of q, 1]"""
        return (q * cache["max"]).maximum(q * cache["min"]).sum(2)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return self.bounds(q, cache).max(1)
