"""Element-wise ops on two values."""

from tilewright.attention.abs.unscaled import Unscaled
from tilewright.attention.cache.op import CacheOp, cache_op
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


class _Unscaled(Unscaled, CacheOp):
    """A cache-side op object without factors."""


Multiply = cache_op(__name__, binary.Multiply, _Unscaled)
Maximum = cache_op(__name__, binary.Maximum, _Unscaled)
Minimum = cache_op(__name__, binary.Minimum, _Unscaled)
Add = cache_op(__name__, binary.Add)
Divide = cache_op(__name__, binary.Divide)
Pow = cache_op(__name__, binary.Pow)
FloorDivide = cache_op(__name__, binary.FloorDivide)
Remainder = cache_op(__name__, binary.Remainder)
BitAnd = cache_op(__name__, binary.BitAnd)
BitOr = cache_op(__name__, binary.BitOr)
BitXor = cache_op(__name__, binary.BitXor)
ShiftLeft = cache_op(__name__, binary.ShiftLeft)
ShiftRight = cache_op(__name__, binary.ShiftRight)
WhereEqual = cache_op(__name__, compare.WhereEqual)
WhereNotEqual = cache_op(__name__, compare.WhereNotEqual)
WhereGreater = cache_op(__name__, compare.WhereGreater)
WhereGreaterEqual = cache_op(__name__, compare.WhereGreaterEqual)
WhereLess = cache_op(__name__, compare.WhereLess)
WhereLessEqual = cache_op(__name__, compare.WhereLessEqual)
