"""Element-wise ops on two values."""

from tilewright.attention.graph import DType, Scope, Types, ValueType
from tilewright.attention.ops.rule import TwoValues, need_integers


class Binary(TwoValues):
    """x ? y, element by element. Inner axes are equal or 1; a value per row meets every page.

    The result is int32 if both operands are integers, else float32. int32 wraps around.
    """


class Add(Binary):
    """``alpha * x + beta * y``. With integers alpha and beta must be whole numbers."""

    alpha: float = 1.0
    beta: float = 1.0

    def infer(self, inputs: Types, scope: Scope) -> ValueType:
        result = super().infer(inputs, scope)
        if result.dtype is DType.INT32 and not all(
            float(factor).is_integer() for factor in (self.alpha, self.beta)
        ):
            found = f"alpha={self.alpha}, beta={self.beta}"
            raise self.refuse("", found, "whole factors for integers", "Cast x or y to float32")
        return result


class Multiply(Binary):
    """``x * y``."""


class Maximum(Binary):
    """The larger of x and y."""


class Minimum(Binary):
    """The smaller of x and y."""


class Divide(Binary):
    """``x / y`` in float32, also of integers; x / 0 is infinite and 0 / 0 is NaN, as IEEE says."""

    result = DType.FLOAT32


class Pow(Binary):
    """``x ** y`` in float32. A negative x with a fractional y is NaN."""

    result = DType.FLOAT32


class IntegerBinary(TwoValues):
    """x ? y on integers, element by element: int32, which wraps around."""

    need = need_integers


class FloorDivide(IntegerBinary):
    """``x // y`` of integers, rounded down. Division by 0 gives 0."""


class Remainder(IntegerBinary):
    """``x - (x // y) * y`` of integers: the sign of y. With y = 0 it is 0."""


class BitAnd(IntegerBinary):
    """Bits that are set in both x and y."""


class BitOr(IntegerBinary):
    """Bits that are set in x or y."""


class BitXor(IntegerBinary):
    """Bits that are set in one of x and y."""


class ShiftLeft(IntegerBinary):
    """``x << y``; bits beyond 32 are lost. y outside 0..31 gives 0."""


class ShiftRight(IntegerBinary):
    """``x >> y`` that keeps the sign. y outside 0..31 gives 0, or -1 for negative x."""


OPS = (
    *(Add, Multiply, Maximum, Minimum, Divide, Pow),
    *(FloorDivide, Remainder, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight),
)
