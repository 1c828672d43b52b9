"""Reductions of neighbours in a page."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import interleave

__all__ = (
    "L2NormInterleave",
    "MaxInterleave",
    "MeanInterleave",
    "MinInterleave",
    "SumInterleave",
)

SumInterleave = cache_op(__name__, interleave.SumInterleave)
MeanInterleave = cache_op(__name__, interleave.MeanInterleave)
MaxInterleave = cache_op(__name__, interleave.MaxInterleave)
MinInterleave = cache_op(__name__, interleave.MinInterleave)
L2NormInterleave = cache_op(__name__, interleave.L2NormInterleave)
