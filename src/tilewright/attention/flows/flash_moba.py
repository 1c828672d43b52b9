"""The decode rule of FlashMoBA: pages by their mean key, one choice for the whole group.

FlashMoBA speeds up the prefill kernel of MoBA; `moba` has the choice for each query head.
"""

from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

__all__ = ("FlashMoBA",)


@register("flash_moba")
class FlashMoBA(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P>."""

    paper = "Optimizing Mixture of Block Attention (2511.11571)"
