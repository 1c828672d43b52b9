"""Ops along the page axis of a row, and across the KV heads of a request."""

import math
from collections.abc import Callable
from typing import Any

from tilewright.attention.backends.reference.namespace import Array, as_float, tree_sum
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame
from tilewright.attention.graph import Types
from tilewright.attention.ops import page_axis
from tilewright.attention.ops.page_axis import Kind

NORM_FLOOR = 1e-12


def softmax(xp: Any, x: Array, axis: int) -> Array:
    """Entries of minus infinity get 0; if all are, all do."""
    if x.shape[axis] == 0:
        return x
    largest = xp.max(x, axis=axis, keepdims=True)
    largest = xp.where(xp.isinf(largest) & (largest < 0), xp.zeros_like(largest), largest)
    weight = xp.exp(x - largest)
    total = tree_sum(xp, weight, axis)
    return weight / xp.where(total == 0, xp.ones_like(total), total)


def _inside(x: Array, pages: range, frame: Frame, function: Callable[[Array], Array]) -> Array:
    """Apply a function to the pages of a span; the others pass through."""
    xp = frame.namespace.xp
    middle = function(x[:, pages.start : pages.stop])
    if len(pages) == x.shape[1]:
        return middle
    ends = (x[:, : pages.start], x[:, pages.stop :])
    first, last = (xp.astype(end, middle.dtype, copy=False) for end in ends)
    return xp.concat([first, middle, last], axis=1)


def _softmax(frame: Frame, op: page_axis.Softmax, types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    x = as_float(xp, x)

    def scaled(part: Array) -> Array:
        return part if op.scale == 1.0 else part * op.scale

    if op.dim == 0:
        return _inside(x, frame.span(op.span), frame, lambda part: softmax(xp, scaled(part), 1))
    x = frame.without_missing(scaled(x), types[0], op.dim, -math.inf)
    return softmax(xp, x, op.dim + 1)


def _normalize(frame: Frame, op: page_axis.Normalize, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp

    def normalized(part: Array) -> Array:
        norm = xp.sqrt(tree_sum(xp, part * part, 1))
        return part / xp.clip(norm, NORM_FLOOR, math.inf)

    return _inside(x, frame.span(op.span), frame, normalized)


def _conv1d(frame: Frame, op: page_axis.Conv1d, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    weight = frame.namespace.array(op.weight)

    def convolved(part: Array) -> Array:
        total = part * weight[0]
        for k in range(1, min(weight.shape[0], part.shape[1])):
            earlier = xp.concat([xp.zeros_like(part[:, :k]), part[:, :-k]], axis=1)
            total = total + earlier * weight[k]
        return total

    return _inside(x, frame.span(op.span), frame, convolved)


def _cum_sum(frame: Frame, op: page_axis.CumSum, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp

    def summed(part: Array, axis: int) -> Array:
        part = xp.flip(part, axis=axis) if op.reverse else part
        total = xp.cumulative_sum(part, axis=axis, dtype=part.dtype)
        return xp.flip(total, axis=axis) if op.reverse else total

    if op.dim == 0:
        return _inside(x, frame.span(op.span), frame, lambda part: summed(part, 1))
    return summed(x, op.dim + 1)


def _pool_pages(frame: Frame, op: page_axis.PoolPages, _types: Types, x: Array) -> Array:
    """One shifted copy for each place of the window; windows are short, rows are long."""
    xp = frame.namespace.xp
    x = as_float(xp, x)
    fill = {Kind.MAX: -math.inf, Kind.MIN: math.inf}.get(op.kind, 0.0)

    def pooled(part: Array) -> Array:
        window = range(-op.before, op.after + 1)
        shifted = xp.stack([_shifted(xp, part, offset, fill) for offset in window], axis=0)
        return _over_first(xp, op.kind, shifted, _window_sizes(xp, op, part.shape[1]))[0]

    return _inside(x, frame.span(op.span), frame, pooled)


def _window_sizes(xp: Any, op: page_axis.PoolPages, num_pages: int) -> Array:
    """Pages in the window of each page: float32 [1, pages, 1, 1]."""
    page = xp.arange(num_pages, dtype=xp.float32)
    first = xp.clip(page - op.before, 0, math.inf)
    last = xp.clip(page + op.after, -math.inf, num_pages - 1)
    return xp.reshape(last - first + 1, (1, -1, 1, 1))


def _shifted(xp: Any, x: Array, offset: int, fill: float) -> Array:
    """``out[p] = x[p + offset]``, ``fill`` beyond the ends."""
    num_pages = x.shape[1]
    beyond = min(abs(offset), num_pages)
    if beyond == 0:
        return x
    ends = xp.full((x.shape[0], beyond, *x.shape[2:]), fill, dtype=x.dtype)
    if offset > 0:
        return xp.concat([x[:, beyond:], ends], axis=1)
    return xp.concat([ends, x[:, : num_pages - beyond]], axis=1)


def _shift_pages(frame: Frame, op: page_axis.ShiftPages, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    fill: Any = op.fill
    if x.dtype == xp.bool:
        fill = bool(op.fill)
    elif x.dtype == xp.int32:
        fill = int(op.fill)
    return _shifted(xp, x, op.offset, fill)


def _across_heads(frame: Frame, op: page_axis.AcrossHeads, _types: Types, x: Array) -> Array:
    xp = frame.namespace.xp
    x = as_float(xp, x)
    x = xp.broadcast_to(x, (frame.num_heads, *x.shape[1:]))
    return xp.broadcast_to(_over_first(xp, op.kind, x, frame.num_heads), x.shape)


def _over_first(xp: Any, kind: Kind, x: Array, count: Array | int) -> Array:
    """Reduce over the first axis, which stays; a mean divides by ``count``."""
    match kind:
        case Kind.MAX:
            return xp.max(x, axis=0, keepdims=True)
        case Kind.MIN:
            return xp.min(x, axis=0, keepdims=True)
        case Kind.SUM:
            return tree_sum(xp, x, 0)
        case Kind.MEAN:
            return tree_sum(xp, x, 0) / count


PAGE_AXIS: EvaluatorTable = {
    page_axis.Softmax: _softmax,
    page_axis.Normalize: _normalize,
    page_axis.Conv1d: _conv1d,
    page_axis.CumSum: _cum_sum,
    page_axis.PoolPages: _pool_pages,
    page_axis.ShiftPages: _shift_pages,
    page_axis.AcrossHeads: _across_heads,
}
