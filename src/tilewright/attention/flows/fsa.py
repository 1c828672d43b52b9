"""The decode rule of Flash Sparse Attention: pages by their mean key.

FSA speeds up the prefill kernel of NSA; in decode it reads the pages with the largest
<mean_g q_g, c_P>.
"""

from tilewright.attention.flow import register
from tilewright.attention.flows.block_sparse_attention import BlockSparseAttention

__all__ = ("FSA",)


@register("fsa")
class FSA(BlockSparseAttention):
    """score(P) = <mean_g q_g, c_P>."""

    paper = (
        "Flash Sparse Attention: An Alternative Efficient Implementation of Native Sparse"
        " Attention Kernel (2508.18224)"
    )
