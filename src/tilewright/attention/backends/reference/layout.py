"""Moving and cutting entries, picking them by index, rotary embedding."""

from typing import Any

from tilewright.attention.backends.reference.evaluator import EvaluatorTable
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.graph import Types
from tilewright.attention.ops import choose, layout


def _transpose(_op: Any, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    return frame.namespace.xp.matrix_transpose(operands[0])


def _reshape(op: Any, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    (x,) = operands
    return frame.namespace.xp.reshape(x, (*x.shape[:2], op.rows, op.columns))


def _range(op: Any) -> tuple[slice, ...]:
    inside, every = slice(op.start, op.end), slice(None)
    return (every, every, inside, every) if op.dim == 1 else (every, every, every, inside)


def _mask_slice(op: Any, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    result = xp.full(operands[0].shape, op.beta, dtype=xp.float32)
    result[_range(op)] = op.alpha
    return result


def _slice(op: Any, operands: tuple[Array, ...], _types: Types, _frame: Frame) -> Array:
    return operands[0][_range(op)]


def _concat(op: Any, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    axis = op.dim + 1
    common = [max(x.shape[i] for x in operands) for i in range(4)]
    parts = []
    for x in operands:
        shape = tuple(x.shape[i] if i == axis else common[i] for i in range(4))
        parts.append(xp.broadcast_to(x, shape))
    return xp.concat(parts, axis=axis)


def _gather(op: choose.Gather, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    x, index = operands
    axis = op.dim + 1
    size = x.shape[axis]
    inside = (index >= 0) & (index < size)
    safe = xp.astype(xp.where(inside, index, xp.zeros_like(index)), xp.int64)
    shape = [max(a, b) for a, b in zip(x.shape, index.shape, strict=True)]
    shape[axis] = index.shape[axis]
    source = list(shape)
    source[axis] = size
    picked = xp.take_along_axis(
        xp.broadcast_to(x, tuple(source)), xp.broadcast_to(safe, tuple(shape)), axis=axis
    )
    return xp.where(inside, picked, xp.zeros_like(picked))


def _rope(op: layout.Rope, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    """Angles in float64: at position 10**5 float32 is already a tenth of a radian off."""
    xp = frame.namespace.xp
    x, position = operands
    half = x.shape[-1] // 2
    rates = xp.asarray([op.base ** (-2.0 * i / x.shape[-1]) for i in range(half)])
    angle = xp.astype(position, xp.float64) * xp.astype(rates, xp.float64)
    cos, sin = (xp.astype(part, xp.float32) for part in (xp.cos(angle), xp.sin(angle)))
    if op.interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., :half], x[..., half:]
    turned = (first * cos - second * sin, first * sin + second * cos)
    if not op.interleaved:
        return xp.concat(turned, axis=-1)
    pairs = xp.stack(turned, axis=-1)
    return xp.reshape(pairs, (*pairs.shape[:-2], 2 * half))


LAYOUT: EvaluatorTable = {
    layout.Transpose: _transpose,
    layout.Reshape: _reshape,
    layout.MaskSlice: _mask_slice,
    layout.Slice: _slice,
    layout.Concat: _concat,
    choose.Gather: _gather,
    layout.Rope: _rope,
}
