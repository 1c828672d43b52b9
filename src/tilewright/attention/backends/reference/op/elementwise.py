"""Element-wise ops: arithmetic, comparisons, masks, choice, casts."""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, mul, ne
from typing import Any

from tilewright.attention.backends.reference.namespace import Array, as_float, as_numbers
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame, on_arrays
from tilewright.attention.graph import Op, Types
from tilewright.attention.ops import binary, choose, compare, unary
from tilewright.attention.ops.rule import MASKED

RELATIONS: Mapping[type[Op], Callable[[Array, Array], Array]] = {
    compare.Equal: eq,
    compare.NotEqual: ne,
    compare.Greater: gt,
    compare.GreaterEqual: ge,
    compare.Less: lt,
    compare.LessEqual: le,
    compare.WhereEqual: eq,
    compare.WhereNotEqual: ne,
    compare.WhereGreater: gt,
    compare.WhereGreaterEqual: ge,
    compare.WhereLess: lt,
    compare.WhereLessEqual: le,
}


def _scaled(xp: Any, op: Any, x: Array) -> Array:
    """``beta * x + alpha``, without arithmetic where it would change nothing."""
    x = as_float(xp, x)
    x = x if op.beta == 1.0 else x * op.beta
    return x if op.alpha == 0.0 else x + op.alpha


def _add(xp: Any, op: binary.Add, x: Array, y: Array) -> Array:
    x, y = as_numbers(xp, x, y)
    kind = int if x.dtype == xp.int32 else float
    x = x if op.alpha == 1.0 else x * kind(op.alpha)
    y = y if op.beta == 1.0 else y * kind(op.beta)
    return x + y


def _safe_divisor(xp: Any, y: Array) -> Array:
    return xp.where(y == 0, xp.ones_like(y), y)


def _floor_divide(xp: Any, _op: binary.FloorDivide, x: Array, y: Array) -> Array:
    """In int64, where -2**31 // -1 has room before it wraps."""
    wide = xp.astype(x, xp.int64) // xp.astype(_safe_divisor(xp, y), xp.int64)
    return xp.where(y == 0, xp.zeros_like(x), xp.astype(_wrapped(xp, wide), xp.int32))


def _remainder(xp: Any, _op: binary.Remainder, x: Array, y: Array) -> Array:
    wide = xp.remainder(xp.astype(x, xp.int64), xp.astype(_safe_divisor(xp, y), xp.int64))
    return xp.where(y == 0, xp.zeros_like(x), xp.astype(wide, xp.int32))


def _wrapped(xp: Any, wide: Array) -> Array:
    """int64 into the range of int32 by its low 32 bits."""
    return xp.remainder(wide + 2**31, 2**32) - 2**31


def _shift_left(xp: Any, _op: binary.ShiftLeft, x: Array, y: Array) -> Array:
    inside = (y >= 0) & (y <= 31)
    count = xp.where(inside, y, xp.zeros_like(y))
    wide = xp.bitwise_left_shift(xp.astype(x, xp.int64), xp.astype(count, xp.int64))
    shifted = xp.astype(_wrapped(xp, wide), xp.int32)
    return xp.where(inside, shifted, xp.zeros_like(shifted))


def _shift_right(xp: Any, _op: binary.ShiftRight, x: Array, y: Array) -> Array:
    inside = (y >= 0) & (y <= 31)
    count = xp.where(inside, y, xp.full_like(y, 31))
    return xp.bitwise_right_shift(x, count)


def _logistic_divisor(xp: Any, op: unary.Sigmoid | unary.Silu, x: Array) -> Array:
    return 1.0 + xp.exp(as_float(xp, x) * op.beta + op.alpha)


def _relu(xp: Any, op: unary.Relu, x: Array) -> Array:
    x = as_float(xp, x)
    return xp.where(x >= op.alpha, x, xp.full_like(x, op.beta))


def _pop_count(xp: Any, _op: unary.PopCount, x: Array) -> Array:
    total = xp.zeros_like(x)
    for bit in range(32):
        total = total + (xp.bitwise_right_shift(x, xp.full_like(x, bit)) & 1)
    return total


def _cast(frame: Frame, op: unary.Cast, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    if op.dtype.computed.value == "bool":
        return x if x.dtype == xp.bool else x != 0
    return frame.namespace.rounded(x, op.dtype)


def _select(xp: Any, _op: choose.Select, mask: Array, x: Array, y: Array) -> Array:
    if x.dtype != xp.bool:
        x, y = as_numbers(xp, x, y)
    return xp.where(mask, x, y)


def _relation(xp: Any, op: compare.Comparison, x: Array, y: Array) -> Array:
    holds = RELATIONS[type(op)](*as_numbers(xp, x, y))
    if not isinstance(op, compare.AdditiveMask):
        return holds
    zero, masked = (xp.full(holds.shape, value, dtype=xp.float32) for value in (0.0, MASKED))
    return xp.where(holds, zero, masked)


ELEMENTWISE: EvaluatorTable = {
    binary.Add: on_arrays(_add),
    binary.Multiply: on_arrays(lambda xp, _op, x, y: mul(*as_numbers(xp, x, y))),
    binary.Maximum: on_arrays(lambda xp, _op, x, y: xp.maximum(*as_numbers(xp, x, y))),
    binary.Minimum: on_arrays(lambda xp, _op, x, y: xp.minimum(*as_numbers(xp, x, y))),
    binary.Divide: on_arrays(lambda xp, _op, x, y: as_float(xp, x) / as_float(xp, y)),
    binary.Pow: on_arrays(lambda xp, _op, x, y: xp.pow(as_float(xp, x), as_float(xp, y))),
    binary.FloorDivide: on_arrays(_floor_divide),
    binary.Remainder: on_arrays(_remainder),
    binary.BitAnd: on_arrays(lambda _xp, _op, x, y: x & y),
    binary.BitOr: on_arrays(lambda _xp, _op, x, y: x | y),
    binary.BitXor: on_arrays(lambda _xp, _op, x, y: x ^ y),
    binary.ShiftLeft: on_arrays(_shift_left),
    binary.ShiftRight: on_arrays(_shift_right),
    unary.Relu: on_arrays(_relu),
    unary.Sigmoid: on_arrays(lambda xp, op, x: 1.0 / _logistic_divisor(xp, op, x)),
    unary.Silu: on_arrays(lambda xp, op, x: as_float(xp, x) / _logistic_divisor(xp, op, x)),
    unary.Add_Mul: on_arrays(_scaled),
    unary.Abs: on_arrays(lambda xp, op, x: xp.abs(_scaled(xp, op, x))),
    unary.Log: on_arrays(lambda xp, op, x: xp.log(_scaled(xp, op, x))),
    unary.Exp: on_arrays(lambda xp, op, x: xp.exp(_scaled(xp, op, x))),
    unary.Sqrt: on_arrays(lambda xp, _op, x: xp.sqrt(as_float(xp, x))),
    unary.Rsqrt: on_arrays(lambda xp, _op, x: 1.0 / xp.sqrt(as_float(xp, x))),
    unary.Sign: on_arrays(lambda xp, _op, x: xp.sign(as_float(xp, x))),
    unary.Floor: on_arrays(lambda xp, _op, x: xp.floor(as_float(xp, x))),
    unary.Clamp: on_arrays(lambda xp, op, x: xp.clip(as_float(xp, x), op.low, op.high)),
    unary.BitNot: on_arrays(lambda _xp, _op, x: ~x),
    unary.PopCount: on_arrays(_pop_count),
    unary.Cast: _cast,
    choose.Select: on_arrays(_select),
    **{op: on_arrays(_relation) for op in RELATIONS},
}
