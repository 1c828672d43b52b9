"""Functions of each element."""

from tilewright.attention.abs.make import make_op
from tilewright.attention.abs.op import op_class, vOp
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

Relu = op_class(__name__, unary.Relu)
Sigmoid = op_class(__name__, unary.Sigmoid)
Silu = op_class(__name__, unary.Silu)
Add_Mul = op_class(__name__, unary.Add_Mul)
Abs = op_class(__name__, unary.Abs)
Log = op_class(__name__, unary.Log)
Exp = op_class(__name__, unary.Exp)
Sqrt = op_class(__name__, unary.Sqrt)
Rsqrt = op_class(__name__, unary.Rsqrt)
Sign = op_class(__name__, unary.Sign)
Floor = op_class(__name__, unary.Floor)
Clamp = op_class(__name__, unary.Clamp)
BitNot = op_class(__name__, unary.BitNot)
PopCount = op_class(__name__, unary.PopCount)


class _ToDtype(vOp):
    """Takes an element type by any name that users know."""

    def build(self, dtype: object) -> Op:
        try:
            return make_op(unary.Cast, resolve_dtype(dtype))
        except SpecError as error:
            raise self._error(error.found, error.expected, error.fix) from None


Cast = op_class(__name__, unary.Cast, _ToDtype)
