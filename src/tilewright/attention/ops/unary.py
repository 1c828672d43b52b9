"""Element-wise ops on one value."""

import math

from tilewright.attention.graph import DType, Op, Scope, Types, ValueType
from tilewright.attention.ops.rule import OneValue, lifted, need_integers, need_rank_two


class Unary(OneValue):
    """A function of each element: same shape, float32."""


class _Bent(Unary):
    alpha: float = 0.0
    beta: float = 0.0


class _OfLine(Unary):
    alpha: float = 0.0
    beta: float = 1.0


class Relu(_Bent):
    """x where ``x >= alpha``, else beta."""


class Sigmoid(_Bent):
    """``1 / (1 + exp(beta * x + alpha))``. The logistic one has beta -1; 0 gives a constant."""


class Silu(_Bent):
    """``x / (1 + exp(beta * x + alpha))``. Swish has beta -1; beta 0 only scales x."""


class Add_Mul(_OfLine):
    """``beta * x + alpha``."""


class Abs(_OfLine):
    """Absolute value of ``beta * x + alpha``."""


class Log(_OfLine):
    """Natural logarithm of ``beta * x + alpha``; minus infinity at 0, NaN below."""


class Exp(_OfLine):
    """``exp(beta * x + alpha)``."""


class Sqrt(Unary):
    """Square root; NaN below 0."""


class Rsqrt(Unary):
    """``1 / sqrt(x)``; infinite at 0, NaN below."""


class Sign(Unary):
    """-1, 0 or 1."""


class Floor(Unary):
    """The largest whole number that is not above x, as float32."""


class Clamp(Unary):
    """x held between ``low`` and ``high``; either may be infinite. NaN stays NaN."""

    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low <= self.high:
            found = f"low={self.low}, high={self.high}"
            raise self.refuse("", found, "low <= high", "swap them")


class BitNot(OneValue):
    """All bits of an integer turned round: int32."""

    need = need_integers
    result = DType.INT32


class PopCount(BitNot):
    """Number of set bits among the 32 of an integer: int32."""


class Cast(Op):
    """The value in another element type, rounded once.

    To a narrower float: to the nearest, ties to even, and fp8 is clamped to its largest finite
    number. To an integer: towards zero, clamped to its range, NaN gives 0. To bool: x != 0. From
    bool: 1 or 0.
    """

    operands = ("x",)
    dtype: DType

    def infer(self, inputs: Types, _scope: Scope) -> ValueType:
        (x,) = inputs
        need_rank_two(self, "x", x)
        return lifted(x, self.dtype)


OPS = (
    *(Relu, Sigmoid, Silu, Add_Mul, Abs, Log, Exp),
    *(Sqrt, Rsqrt, Sign, Floor, Clamp, BitNot, PopCount, Cast),
)
