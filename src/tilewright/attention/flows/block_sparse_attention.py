"""Pages by their mean key.

c_P = mean of the keys of page P, score(P) = <mean of the group's queries, c_P>.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.ready import ScoredFlow

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("BlockSparseAttention",)


@register("block_sparse_attention")
class BlockSparseAttention(ScoredFlow):
    """score(P) = <mean_g q_g, c_P>."""

    paper = "Kinetics: Rethinking Test-Time Scaling Laws (2506.05333)"
    group = "mean of queries"

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {"centroids": (1, head_dim)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        cache["centroids"] = cache["k"].mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return cache["centroids"] @ q.mean(1).T
