"""Functions of each element."""

from tilewright.attention.abs.make import make_op
from tilewright.attention.cache.op import CacheOp, cache_op
from tilewright.attention.graph import Op
from tilewright.attention.ops import unary
from tilewright.attention.utils import resolve_dtype
from tilewright.errors import SpecError

__all__ = (
    "Abs",
    "Add_Mul",
    "BitNot",
    "Cast",
    "Clamp",
    "Exp",
    "Floor",
    "Log",
    "PopCount",
    "Relu",
    "Rsqrt",
    "Sigmoid",
    "Sign",
    "Silu",
    "Sqrt",
)

Relu = cache_op(__name__, unary.Relu)
Sigmoid = cache_op(__name__, unary.Sigmoid)
Silu = cache_op(__name__, unary.Silu)
Add_Mul = cache_op(__name__, unary.Add_Mul)
Abs = cache_op(__name__, unary.Abs)
Log = cache_op(__name__, unary.Log)
Exp = cache_op(__name__, unary.Exp)
Sqrt = cache_op(__name__, unary.Sqrt)
Rsqrt = cache_op(__name__, unary.Rsqrt)
Sign = cache_op(__name__, unary.Sign)
Floor = cache_op(__name__, unary.Floor)
Clamp = cache_op(__name__, unary.Clamp)
BitNot = cache_op(__name__, unary.BitNot)
PopCount = cache_op(__name__, unary.PopCount)


class _ToDtype(CacheOp):
    """Takes an element type by any name that users know."""

    def build(self, dtype: object) -> Op:
        try:
            return make_op(unary.Cast, resolve_dtype(dtype))
        except SpecError as error:
            raise self._error(error.found, error.expected, error.fix) from None


Cast = cache_op(__name__, unary.Cast, _ToDtype)
