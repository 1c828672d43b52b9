"""Pages by their mean key and by how much their values can change the output.

e_P = mean L2 norm of the values of page P, score(P) = <mean_g q_g, c_P> e_P.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

__all__ = ("VEnergyGatedCentroid",)


@register("venergy_gated_centroid")
class VEnergyGatedCentroid(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P> * mean_i |v_i|."""

    paper = "a built-in rule of Vortex (2606.06453)"

    def create_cache(self, block_size: int, head_dim: int) -> dict[str, tuple[int, int]]:
        return {**super().create_cache(block_size, head_dim), "v_energy": (1, 1)}

    def forward_cache(self, cache: FieldMap, loc: object, ctx: ContextBase) -> None:
        super().forward_cache(cache, loc, ctx)
        cache["v_energy"] = cache["v"].l2norm(2).mean(1)

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return super().score(q, cache, ctx) * cache["v_energy"]
