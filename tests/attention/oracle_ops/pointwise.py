"""Element by element: unary functions, binary functions with stretched sides, masks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.attention.oracle_ops.rounding import FORMATS, round_one
from tests.attention.oracle_ops.row import (
    MASKED,
    AnyArray,
    Array,
    are_whole,
    at_inner,
    at_page,
    num_entries,
    wrapped,
)

Oracle = Callable[..., AnyArray]


def stretched(function: Callable[..., Any], *operands: AnyArray, dtype: Any) -> AnyArray:
    size = num_entries(*operands)
    rows = max(operand.shape[1] for operand in operands)
    columns = max(operand.shape[2] for operand in operands)
    out = np.empty((size, rows, columns), dtype=dtype)
    for s, i, j in np.ndindex(*out.shape):
        out[s, i, j] = function(*(at_inner(at_page(operand, s), i, j) for operand in operands))
    return out


def binary(function: Callable[[Any, Any], Any]) -> Oracle:
    """Two whole numbers give one, in 32 bits; all else is float."""

    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        if are_whole(x, y):
            return stretched(lambda a, b: wrapped(function(a, b)), x, y, dtype=np.int64)
        return stretched(lambda a, b: function(float(a), float(b)), x, y, dtype=np.float64)

    return apply


def add(x: AnyArray, y: AnyArray, *, alpha: float = 1.0, beta: float = 1.0) -> AnyArray:
    if are_whole(x, y):
        return binary(lambda a, b: int(alpha) * a + int(beta) * b)(x, y)
    return binary(lambda a, b: alpha * a + beta * b)(x, y)


def floats(function: Callable[[float, float], float]) -> Oracle:
    """Always float, also of whole numbers."""

    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        return stretched(lambda a, b: function(float(a), float(b)), x, y, dtype=np.float64)

    return apply


def whole(function: Callable[[int, int], int]) -> Oracle:
    """On whole numbers, in 32 bits with a sign."""

    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        return stretched(lambda a, b: wrapped(function(int(a), int(b))), x, y, dtype=np.int64)

    return apply


def compared(relation: Callable[[Any, Any], bool]) -> Oracle:
    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        return stretched(relation, x, y, dtype=np.bool_)

    return apply


def where(relation: Callable[[Any, Any], bool]) -> Oracle:
    """0 where the relation holds, else -1e30."""

    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        return stretched(lambda a, b: 0.0 if relation(a, b) else MASKED, x, y, dtype=np.float64)

    return apply


def unary(function: Callable[[float], float]) -> Oracle:
    def apply(x: AnyArray) -> AnyArray:
        return stretched(lambda value: function(float(value)), x, dtype=np.float64)

    return apply


def scaled(function: Callable[[float], float]) -> Oracle:
    """``function(beta x + alpha)``."""

    def apply(x: AnyArray, *, alpha: float = 0.0, beta: float = 1.0) -> AnyArray:
        return unary(lambda value: function(beta * value + alpha))(x)

    return apply


def relu(x: AnyArray, *, alpha: float = 0.0, beta: float = 0.0) -> AnyArray:
    return unary(lambda value: value if value >= alpha else beta)(x)


def falling(exponent: float) -> float:
    """``1 / (1 + exp(exponent))``, without overflow."""
    return 1.0 / (1.0 + math.exp(exponent)) if exponent < 700.0 else 0.0


def sigmoid(x: AnyArray, *, alpha: float = 0.0, beta: float = 0.0) -> AnyArray:
    return unary(lambda value: falling(beta * value + alpha))(x)


def silu(x: AnyArray, *, alpha: float = 0.0, beta: float = 0.0) -> AnyArray:
    return unary(lambda value: value * falling(beta * value + alpha))(x)


def log_of(value: float) -> float:
    """The natural logarithm as IEEE has it: minus infinity at 0, NaN below."""
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def exp_of(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


def ratio(left: float, right: float) -> float:
    """Division as IEEE has it: a signed infinity over zero, NaN for zero over zero."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0.0 else math.nan


def power(base: float, exponent: float) -> float:
    """NaN for a negative base with a broken exponent, infinity for zero below zero."""
    if base == 0.0 and exponent < 0.0:
        return math.inf
    if base < 0.0 and not exponent.is_integer():
        return math.nan
    return float(base**exponent)


def sign(value: float) -> float:
    return math.copysign(1.0, value) if value else 0.0


def clamp(x: AnyArray, *, low: float = -math.inf, high: float = math.inf) -> AnyArray:
    return unary(lambda value: value if math.isnan(value) else min(max(value, low), high))(x)


def select(mask: AnyArray, x: AnyArray, y: AnyArray) -> AnyArray:
    """``x`` where the mask is true, else ``y``: what is not chosen has no influence."""
    return stretched(lambda c, a, b: a if c else b, mask, x, y, dtype=np.result_type(x, y))


def floor_divided(left: int, right: int) -> int:
    return left // right if right else 0


def remainder(left: int, right: int) -> int:
    return left % right if right else 0


def shifted_left(value: int, count: int) -> int:
    return value << count if 0 <= count < 32 else 0


def shifted_right(value: int, count: int) -> int:
    """Keeps the sign."""
    return value >> count if 0 <= count < 32 else -int(value < 0)


def bit_not(x: AnyArray) -> AnyArray:
    return stretched(lambda value: wrapped(~int(value)), x, dtype=np.int64)


def pop_count(x: AnyArray) -> AnyArray:
    return stretched(lambda value: (int(value) % 2**32).bit_count(), x, dtype=np.int64)


INTEGERS = {"int32": 2**31, "int8": 2**7, "int4": 2**3}


def truncated(value: float, limit: int) -> int:
    """Towards zero, held in the range; NaN is 0."""
    if math.isnan(value):
        return 0
    return int(min(max(value, -limit), limit - 1))


def cast(x: Array, *, dtype: str) -> AnyArray:
    if dtype in INTEGERS:
        limit = INTEGERS[dtype]
        return stretched(lambda value: truncated(float(value), limit), x, dtype=np.int64)
    if dtype == "bool":
        return stretched(lambda value: value != 0, x, dtype=np.bool_)
    number_format = FORMATS[dtype]
    return unary(lambda value: round_one(value, number_format))(x)


def any_of(*masks: AnyArray) -> AnyArray:
    return stretched(lambda *flags: any(flags), *masks, dtype=np.bool_)


def all_of(*masks: AnyArray) -> AnyArray:
    return stretched(lambda *flags: all(flags), *masks, dtype=np.bool_)


def complement(x: AnyArray) -> AnyArray:
    return stretched(lambda flag: not flag, x, dtype=np.bool_)
