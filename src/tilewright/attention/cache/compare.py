"""Comparisons as bools."""

from tilewright.attention.cache.op import cache_op
from tilewright.attention.ops import compare

__all__ = (
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "NotEqual",
)

Equal = cache_op(__name__, compare.Equal)
NotEqual = cache_op(__name__, compare.NotEqual)
Greater = cache_op(__name__, compare.Greater)
GreaterEqual = cache_op(__name__, compare.GreaterEqual)
Less = cache_op(__name__, compare.Less)
LessEqual = cache_op(__name__, compare.LessEqual)
