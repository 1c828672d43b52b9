"""Comparisons as bools."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import compare

__all__ = (
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "NotEqual",
)

Equal = op_class(__name__, compare.Equal)
NotEqual = op_class(__name__, compare.NotEqual)
Greater = op_class(__name__, compare.Greater)
GreaterEqual = op_class(__name__, compare.GreaterEqual)
Less = op_class(__name__, compare.Less)
LessEqual = op_class(__name__, compare.LessEqual)
