"""Functions of each element."""

from tilewright.attention.abs.op import op_class, vOp
from tilewright.attention.ops import unary
from tilewright.attention.utils import resolve_dtype

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

    def __init__(self, dtype: object) -> None:
        super().__init__(resolve_dtype(dtype))


Cast = op_class(__name__, unary.Cast, _ToDtype)
