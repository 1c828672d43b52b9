"""Element-wise ops on two values."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.abs.unscaled import Unscaled
from tilewright.attention.ops import binary, compare

__all__ = (
    "Add",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Divide",
    "FloorDivide",
    "Maximum",
    "Minimum",
    "Multiply",
    "Pow",
    "Remainder",
    "ShiftLeft",
    "ShiftRight",
    "WhereEqual",
    "WhereGreater",
    "WhereGreaterEqual",
    "WhereLess",
    "WhereLessEqual",
    "WhereNotEqual",
)

Multiply = op_class(__name__, binary.Multiply, Unscaled)
Maximum = op_class(__name__, binary.Maximum, Unscaled)
Minimum = op_class(__name__, binary.Minimum, Unscaled)
Add = op_class(__name__, binary.Add)
Divide = op_class(__name__, binary.Divide)
Pow = op_class(__name__, binary.Pow)
FloorDivide = op_class(__name__, binary.FloorDivide)
Remainder = op_class(__name__, binary.Remainder)
BitAnd = op_class(__name__, binary.BitAnd)
BitOr = op_class(__name__, binary.BitOr)
BitXor = op_class(__name__, binary.BitXor)
ShiftLeft = op_class(__name__, binary.ShiftLeft)
ShiftRight = op_class(__name__, binary.ShiftRight)
WhereEqual = op_class(__name__, compare.WhereEqual)
WhereNotEqual = op_class(__name__, compare.WhereNotEqual)
WhereGreater = op_class(__name__, compare.WhereGreater)
WhereGreaterEqual = op_class(__name__, compare.WhereGreaterEqual)
WhereLess = op_class(__name__, compare.WhereLess)
WhereLessEqual = op_class(__name__, compare.WhereLessEqual)
