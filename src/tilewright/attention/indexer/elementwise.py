"""Functions of each element."""

from tilewright.attention.abs.op import op_class
from tilewright.attention.ops import unary

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
Cast = op_class(__name__, unary.Cast)
