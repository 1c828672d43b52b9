"""Reductions over rows, columns, pages and groups of neighbours."""

import math
from typing import Any

from tilewright.attention.backends.reference.namespace import (
    Array,
    as_float,
    empty_sum,
    part_of,
    tree_sum,
)
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame
from tilewright.attention.graph import Types, ValueType
from tilewright.attention.ops import reduce


def lowest(xp: Any, x: Array) -> float | int | bool:
    """What never wins a maximum."""
    if x.dtype == xp.bool:
        return False
    return -(2**31) if x.dtype == xp.int32 else -math.inf


def highest(xp: Any, x: Array) -> float | int | bool:
    if x.dtype == xp.bool:
        return True
    return 2**31 - 1 if x.dtype == xp.int32 else math.inf


def _prepared(frame: Frame, op: Any, types: Types, x: Array, fill: Any) -> tuple[Array, int]:
    """The entries that take part, ``fill`` for tokens that are not there, and the array axis."""
    if op.dim == 0:
        pages = frame.span(op.span)
        return x[:, pages.start : pages.stop], 1
    return frame.without_missing(x, types[0], op.dim, fill), op.dim + 1


def _count(op: Any, x: Array, x_type: ValueType, frame: Frame) -> Array:
    """Entries of each sum that are there: float32, broadcastable to the result."""
    xp = frame.namespace.xp
    if op.dim == 0:
        return xp.full((1, 1, 1, 1), float(len(frame.span(op.span))), dtype=xp.float32)
    if op.dim in x_type.token_axes:
        return as_float(xp, frame.token_counts())
    return xp.full((1, 1, 1, 1), float(x.shape[op.dim + 1]), dtype=xp.float32)


def _sum(frame: Frame, op: reduce.Sum, types: Types, x: Array) -> Array:
    x, axis = _prepared(frame, op, types, x, 0)
    return tree_sum(frame.namespace.xp, x, axis)


def _mean(frame: Frame, op: reduce.Mean, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    x, axis = _prepared(frame, op, types, as_float(xp, x), 0)
    count = _count(op, x, types[0], frame)
    return tree_sum(xp, x, axis) / xp.where(count == 0, xp.ones_like(count), count)


def _l2_norm(frame: Frame, op: reduce.L2Norm, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    x, axis = _prepared(frame, op, types, as_float(xp, x), 0)
    return xp.sqrt(tree_sum(xp, x * x, axis))


def _extreme(frame: Frame, op: Any, types: Types, x: Array) -> Array:
    """Max or Min; bools as any or all."""
    xp = frame.namespace.xp
    largest = isinstance(op, reduce.Max)
    fill = (lowest if largest else highest)(xp, x)
    x, axis = _prepared(frame, op, types, x, fill)
    if x.shape[axis] == 0:
        return empty_sum(xp, x, axis, x.dtype)
    if x.dtype == xp.bool:
        return (xp.any if largest else xp.all)(x, axis=axis, keepdims=True)
    return (xp.max if largest else xp.min)(x, axis=axis, keepdims=True)


def _arg_max(frame: Frame, op: reduce.ArgMax, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    x, axis = _prepared(frame, op, types, x, lowest(xp, x))
    if x.shape[axis] == 0:
        return empty_sum(xp, x, axis, xp.int32)
    offset = frame.span(op.span).start if op.dim == 0 else 0
    return xp.astype(part_of(arg_order(xp, x, axis), axis, 0, 1) + offset, xp.int32)


def _arg_top(frame: Frame, op: reduce.ArgTop, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    axis = op.dim + 1
    x = frame.without_missing(x, types[0], op.dim, lowest(xp, x))
    return xp.astype(part_of(arg_order(xp, x, axis), axis, 0, op.k), xp.int32)


def arg_order(xp: Any, x: Array, axis: int) -> Array:
    """Positions from the largest entry to the smallest; equals in order, NaN as the smallest."""
    if xp.isdtype(x.dtype, "real floating"):
        x = xp.where(xp.isnan(x), xp.full_like(x, -math.inf), x)
        return xp.argsort(-x, axis=axis, stable=True)
    return xp.argsort(-xp.astype(x, xp.int64), axis=axis, stable=True)


def _group_counts(op: Any, x_type: ValueType, frame: Frame) -> Array:
    """Entries of each group that are there: int32, broadcastable to the result."""
    xp = frame.namespace.xp
    if op.dim not in x_type.token_axes or frame.pages.is_full:
        return xp.full((1, 1, 1, 1), op.k, dtype=xp.int32)
    num_groups = x_type.shape[op.dim - 1] // op.k
    start = xp.reshape(xp.arange(num_groups, dtype=xp.int32) * op.k, (1, 1, -1, 1))
    there = xp.clip(frame.token_counts() - start, 0, op.k)
    return there if op.dim == 1 else xp.matrix_transpose(there)


def _interleaved(frame: Frame, op: Any, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    largest, smallest = reduce.MaxInterleave, reduce.MinInterleave
    fill = {largest: -math.inf, smallest: math.inf}.get(type(op), 0.0)
    x = frame.without_missing(as_float(xp, x), types[0], op.dim, fill)
    axis = op.dim + 2  # neighbours on an axis of their own
    x = xp.reshape(x, (*x.shape[: axis - 1], x.shape[axis - 1] // op.k, op.k, *x.shape[axis:]))
    there = _group_counts(op, types[0], frame)
    match op:
        case reduce.MaxInterleave():
            result = xp.max(x, axis=axis)
        case reduce.MinInterleave():
            result = xp.min(x, axis=axis)
        case reduce.L2NormInterleave():
            result = xp.sqrt(xp.squeeze(tree_sum(xp, x * x, axis), axis=axis))
        case _:
            result = xp.squeeze(tree_sum(xp, x, axis), axis=axis)
    if isinstance(op, reduce.MeanInterleave):
        result = result / as_float(xp, xp.clip(there, 1, op.k))
    return xp.where(there > 0, result, xp.zeros_like(result))


REDUCTIONS: EvaluatorTable = {
    reduce.Sum: _sum,
    reduce.Mean: _mean,
    reduce.L2Norm: _l2_norm,
    reduce.Max: _extreme,
    reduce.Min: _extreme,
    reduce.ArgMax: _arg_max,
    reduce.ArgTop: _arg_top,
    reduce.SumInterleave: _interleaved,
    reduce.MeanInterleave: _interleaved,
    reduce.MaxInterleave: _interleaved,
    reduce.MinInterleave: _interleaved,
    reduce.L2NormInterleave: _interleaved,
}
