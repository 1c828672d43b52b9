"""Reductions over tokens and channels of a page."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import reduce

__all__ = (
    "ArgMax",
    "ArgTop",
    "L2Norm",
    "Max",
    "Mean",
    "Min",
    "Sum",
)

Sum = cache_op(__name__, reduce.Sum)
Mean = cache_op(__name__, reduce.Mean)
Max = cache_op(__name__, reduce.Max)
Min = cache_op(__name__, reduce.Min)
L2Norm = cache_op(__name__, reduce.L2Norm)
ArgMax = cache_op(__name__, reduce.ArgMax)
ArgTop = cache_op(__name__, reduce.ArgTop)
