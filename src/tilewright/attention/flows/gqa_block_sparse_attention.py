"""Pages by the largest share that any query head gives their mean key.

p_g(P) = softmax over the middle pages of 0.09 <q_g, c_P>, score(P) = max_g p_g(P). The factor is
about 1 / sqrt(128), and part of the rule.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("GQABlockSparseAttention",)


@register("gqa_block_sparse_attention")
class GQABlockSparseAttention(BlockSparseAttention):
    """score(P) = max_g softmax_P(0.09 <q_g, c_P>)."""

    group = "max of shares"

    SCALE = 0.09

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        return (cache["centroids"] @ q.T).softmax(dim=0, scale=self.SCALE).max(2)
