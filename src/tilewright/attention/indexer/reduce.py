"""Reductions over pages, rows and columns."""

from tilewright.attention.abs.op import op_class
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

Sum = op_class(__name__, reduce.Sum)
Mean = op_class(__name__, reduce.Mean)
Max = op_class(__name__, reduce.Max)
Min = op_class(__name__, reduce.Min)
L2Norm = op_class(__name__, reduce.L2Norm)
ArgMax = op_class(__name__, reduce.ArgMax)
ArgTop = op_class(__name__, reduce.ArgTop)
