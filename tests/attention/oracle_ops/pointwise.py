"""Element by element: unary functions, binary functions with stretched sides, masks."""

import math
from collections.abc import Callable

import numpy as np

from tests.attention.oracle_ops.row import MASKED, Array, at_inner, at_page, num_entries

Oracle = Callable[..., Array]


def binary(function: Callable[[float, float], float]) -> Oracle:
    def apply(x: Array, y: Array) -> Array:
        return stretched(function, x, y)

    return apply


def stretched(function: Callable[..., float], *operands: Array) -> Array:
    size = num_entries(*operands)
    rows = max(operand.shape[1] for operand in operands)
    columns = max(operand.shape[2] for operand in operands)
    out = np.empty((size, rows, columns))
    for s, i, j in np.ndindex(*out.shape):
        out[s, i, j] = function(*(at_inner(at_page(operand, s), i, j) for operand in operands))
    return out


def add(x: Array, y: Array, *, alpha: float = 1.0, beta: float = 1.0) -> Array:
    return stretched(lambda a, b: alpha * a + beta * b, x, y)


def where(relation: Callable[[float, float], bool]) -> Oracle:
    """0 where the relation holds, else -1e30."""

    def apply(x: Array, y: Array) -> Array:
        return stretched(lambda a, b: 0.0 if relation(a, b) else MASKED, x, y)

    return apply


def unary(function: Callable[[float], float]) -> Oracle:
    def apply(x: Array) -> Array:
        out = np.empty(x.shape)
        for index in np.ndindex(*x.shape):
            out[index] = function(float(x[index]))
        return out

    return apply


def scaled(function: Callable[[float], float]) -> Oracle:
    """``function(beta x + alpha)``."""

    def apply(x: Array, *, alpha: float = 0.0, beta: float = 1.0) -> Array:
        return unary(lambda value: function(beta * value + alpha))(x)

    return apply


def relu(x: Array, *, alpha: float = 0.0, beta: float = 0.0) -> Array:
    return unary(lambda value: value if value >= alpha else beta)(x)


def rising(exponent: float) -> float:
    """``1 / (1 + exp(exponent))``, without overflow."""
    return 1.0 / (1.0 + math.exp(exponent)) if exponent < 700.0 else 0.0


def sigmoid(x: Array, *, alpha: float = 0.0, beta: float = 0.0) -> Array:
    return unary(lambda value: rising(beta * value + alpha))(x)


def silu(x: Array, *, alpha: float = 0.0, beta: float = 0.0) -> Array:
    return unary(lambda value: value * rising(beta * value + alpha))(x)


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
    return math.nan if left == 0.0 or math.isnan(left) else math.copysign(math.inf, left * right)


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0.0 else math.nan


def power(x: Array, *, exponent: float) -> Array:
    """NaN for a negative base with a broken exponent, infinity for zero below zero."""

    def raised(value: float) -> float:
        if value == 0.0 and exponent < 0.0:
            return math.inf
        if value < 0.0 and not float(exponent).is_integer():
            return math.nan
        return float(value**exponent)

    return unary(raised)(x)


def clamp(x: Array, *, low: float = -math.inf, high: float = math.inf) -> Array:
    return unary(lambda value: min(max(value, low), high))(x)


def select(condition: Array, x: Array, y: Array) -> Array:
    """``x`` where the condition is not 0, else ``y``: what is not chosen has no influence."""
    return stretched(lambda c, a, b: a if c != 0.0 else b, condition, x, y)


def integer(function: Callable[[int, int], int]) -> Oracle:
    """On whole numbers; the operands are truncated towards zero first."""

    def apply(x: Array, y: Array) -> Array:
        return stretched(lambda a, b: float(function(int(a), int(b))), x, y)

    return apply
