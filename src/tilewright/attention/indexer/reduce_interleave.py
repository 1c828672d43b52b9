"""Reductions of neighbours."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import interleave

__all__ = (
    "L2NormInterleave",
    "MaxInterleave",
    "MeanInterleave",
    "MinInterleave",
    "SumInterleave",
)

SumInterleave = op_class(__name__, interleave.SumInterleave)
MeanInterleave = op_class(__name__, interleave.MeanInterleave)
MaxInterleave = op_class(__name__, interleave.MaxInterleave)
MinInterleave = op_class(__name__, interleave.MinInterleave)
L2NormInterleave = op_class(__name__, interleave.L2NormInterleave)
