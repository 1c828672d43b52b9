"""Element-wise ops: arithmetic, comparisons, masks, choice, casts."""

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.attention.backends.reference.evaluator import (
    EvaluatorTable,
    per_element,
)
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.graph import Op, Types
from tilewright.attention.ops import binary, choose, compare, unary
from tilewright.attention.ops.rule import MASKED

RELATIONS: Mapping[type[Op], Callable[[Array, Array], Array]] = {
    compare.Equal: lambda x, y: x == y,
    compare.NotEqual: lambda x, y: x != y,
    compare.Greater: lambda x, y: x > y,
    compare.GreaterEqual: lambda x, y: x >= y,
    compare.Less: lambda x, y: x < y,
    compare.LessEqual: lambda x, y: x <= y,
    compare.WhereEqual: lambda x, y: x == y,
    compare.WhereNotEqual: lambda x, y: x != y,
    compare.WhereGreater: lambda x, y: x > y,
    compare.WhereGreaterEqual: lambda x, y: x >= y,
    compare.WhereLess: lambda x, y: x < y,
    compare.WhereLessEqual: lambda x, y: x <= y,
}


def _numbers(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Both as int32 if both are, else both as float32."""
    if x.dtype == xp.int32 and y.dtype == xp.int32:
        return x, y
    return xp.astype(x, xp.float32, copy=False), xp.astype(y, xp.float32, copy=False)


def _float(xp: Any, x: Array) -> Array:
    return xp.astype(x, xp.float32, copy=False)


def _scaled(xp: Any, op: Any, x: Array) -> Array:
    """``beta * x + alpha``, without arithmetic where it would change nothing."""
    x = _float(xp, x)
    x = x if op.beta == 1.0 else x * op.beta
    return x if op.alpha == 0.0 else x + op.alpha


def _add(xp: Any, op: binary.Add, x: Array, y: Array) -> Array:
    x, y = _numbers(xp, x, y)
    kind = int if x.dtype == xp.int32 else float
    x = x if op.alpha == 1.0 else x * kind(op.alpha)
    y = y if op.beta == 1.0 else y * kind(op.beta)
    return x + y


def _multiply(xp: Any, _op: binary.Multiply, x: Array, y: Array) -> Array:
    x, y = _numbers(xp, x, y)
    return x * y


def _maximum(xp: Any, _op: binary.Maximum, x: Array, y: Array) -> Array:
    return xp.maximum(*_numbers(xp, x, y))


def _minimum(xp: Any, _op: binary.Minimum, x: Array, y: Array) -> Array:
    return xp.minimum(*_numbers(xp, x, y))


def _divide(xp: Any, _op: binary.Divide, x: Array, y: Array) -> Array:
    return _float(xp, x) / _float(xp, y)


def _pow(xp: Any, _op: binary.Pow, x: Array, y: Array) -> Array:
    return xp.pow(_float(xp, x), _float(xp, y))


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


def _sigmoid(xp: Any, op: unary.Sigmoid, x: Array) -> Array:
    return 1.0 / (1.0 + xp.exp(_float(xp, x) * op.beta + op.alpha))


def _silu(xp: Any, op: unary.Silu, x: Array) -> Array:
    return _float(xp, x) / (1.0 + xp.exp(_float(xp, x) * op.beta + op.alpha))


def _relu(xp: Any, op: unary.Relu, x: Array) -> Array:
    x = _float(xp, x)
    return xp.where(x >= op.alpha, x, xp.full_like(x, op.beta))


def _sign(xp: Any, _op: unary.Sign, x: Array) -> Array:
    return xp.sign(_float(xp, x))


def _clamp(xp: Any, op: unary.Clamp, x: Array) -> Array:
    return xp.clip(_float(xp, x), op.low, op.high)


def _pop_count(xp: Any, _op: unary.PopCount, x: Array) -> Array:
    total = xp.zeros_like(x)
    for bit in range(32):
        total = total + (xp.bitwise_right_shift(x, xp.full_like(x, bit)) & 1)
    return total


def _cast(op: unary.Cast, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    (x,) = operands
    xp = frame.namespace.xp
    if op.dtype.computed.value == "bool":
        return x if x.dtype == xp.bool else x != 0
    return frame.namespace.rounded(x, op.dtype)


def _select(xp: Any, _op: choose.Select, mask: Array, x: Array, y: Array) -> Array:
    if x.dtype != xp.bool:
        x, y = _numbers(xp, x, y)
    return xp.where(mask, x, y)


def _relation(xp: Any, op: compare.Comparison, x: Array, y: Array) -> Array:
    holds = RELATIONS[type(op)](*_numbers(xp, x, y))
    if not isinstance(op, compare.AdditiveMask):
        return holds
    shape = holds.shape
    zero, masked = xp.zeros(shape, dtype=xp.float32), xp.full(shape, MASKED, dtype=xp.float32)
    return xp.where(holds, zero, masked)


ELEMENTWISE: EvaluatorTable = {
    binary.Add: per_element(_add),
    binary.Multiply: per_element(_multiply),
    binary.Maximum: per_element(_maximum),
    binary.Minimum: per_element(_minimum),
    binary.Divide: per_element(_divide),
    binary.Pow: per_element(_pow),
    binary.FloorDivide: per_element(_floor_divide),
    binary.Remainder: per_element(_remainder),
    binary.BitAnd: per_element(lambda _xp, _op, x, y: x & y),
    binary.BitOr: per_element(lambda _xp, _op, x, y: x | y),
    binary.BitXor: per_element(lambda _xp, _op, x, y: x ^ y),
    binary.ShiftLeft: per_element(_shift_left),
    binary.ShiftRight: per_element(_shift_right),
    unary.Relu: per_element(_relu),
    unary.Sigmoid: per_element(_sigmoid),
    unary.Silu: per_element(_silu),
    unary.Add_Mul: per_element(_scaled),
    unary.Abs: per_element(lambda xp, op, x: xp.abs(_scaled(xp, op, x))),
    unary.Log: per_element(lambda xp, op, x: xp.log(_scaled(xp, op, x))),
    unary.Exp: per_element(lambda xp, op, x: xp.exp(_scaled(xp, op, x))),
    unary.Sqrt: per_element(lambda xp, _op, x: xp.sqrt(_float(xp, x))),
    unary.Rsqrt: per_element(lambda xp, _op, x: 1.0 / xp.sqrt(_float(xp, x))),
    unary.Sign: per_element(_sign),
    unary.Floor: per_element(lambda xp, _op, x: xp.floor(_float(xp, x))),
    unary.Clamp: per_element(_clamp),
    unary.BitNot: per_element(lambda _xp, _op, x: ~x),
    unary.PopCount: per_element(_pop_count),
    unary.Cast: _cast,
    choose.Select: per_element(_select),
    **{op: per_element(_relation) for op in RELATIONS},
}
