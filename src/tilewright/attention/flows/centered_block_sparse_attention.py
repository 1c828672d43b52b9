"""Pages by their mean key, with the mean score of the middle subtracted.

s_P = mean_g <q_g, c_P>, score(P) = s_P - mean of s over the middle pages. It ranks like the plain
rule: what is subtracted is one number for all pages.
"""

from tilewright.attention.abs import ContextBase, FieldMap, Value
from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

# ruff: noqa: ARG002 - methods of a flow have the signature that users know

__all__ = ("CenteredBlockSparseAttention",)


@register("centered_block_sparse_attention")
class CenteredBlockSparseAttention(BlockSparseAttention):
    """score(P) = s_P - mean_P s, s_P = mean_g <q_g, c_P>."""

    group = "mean of scores"

    def score(self, q: Value, cache: FieldMap, ctx: ContextBase) -> Value:
        plain = (cache["centroids"] @ q.T).mean(2)
        return plain - plain.mean(0)
