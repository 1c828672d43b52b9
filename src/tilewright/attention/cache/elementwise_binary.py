"""Element-wise ops on two values."""

from numbers import Real
from typing import Any

from tilewright.attention.cache.op import CacheOp, cache_op
from tilewright.attention.graph import Op
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


class _Unscaled(CacheOp):
    """An op that takes ``alpha`` and ``beta`` as Vortex's does, and like it has no use for them.

    Only 1.0 is accepted: a factor without effect would be silently wrong for its author.
    """

    def build(self, alpha: Any = 1.0, beta: Any = 1.0) -> Op | None:
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, bool) or not isinstance(value, Real) or value != 1:
                name_of_op = type(self).__name__
                expected = f"nothing: {name_of_op} has no factors, in Vortex it ignores them"
                fix = f"write {name_of_op}(), and scale an operand with Add_Mul(beta=...)"
                raise self._error(f"{name}={value!r}", expected, fix)
        return super().build()


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
