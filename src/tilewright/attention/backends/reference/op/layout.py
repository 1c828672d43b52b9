"""Entries by their place: moving, cutting and picking them, position and age as values."""

from typing import Any

from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame, on_arrays
from tilewright.attention.graph import Types
from tilewright.attention.ops import choose, layout, leaf, position


def _range(op: Any) -> tuple[slice, ...]:
    inside, every = slice(op.start, op.end), slice(None)
    return (every, every, inside, every) if op.dim == 1 else (every, every, every, inside)


def _mask_slice(xp: Any, op: layout.MaskSlice, x: Array) -> Array:
    result = xp.full(x.shape, op.beta, dtype=xp.float32)
    result[_range(op)] = op.alpha
    return result


def _concat(xp: Any, op: layout.Concat, *operands: Array) -> Array:
    axis = op.dim + 1
    common = [max(x.shape[i] for x in operands) for i in range(4)]
    parts = []
    for x in operands:
        shape = tuple(x.shape[i] if i == axis else common[i] for i in range(4))
        parts.append(xp.broadcast_to(x, shape))
    return xp.concat(parts, axis=axis)


def _gather(xp: Any, op: choose.Gather, x: Array, index: Array) -> Array:
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


def _rope(xp: Any, op: layout.Rope, x: Array, at: Array) -> Array:
    """Rotate in float64: at position 10**5 a float32 angle is already a tenth of a radian off."""
    half = x.shape[-1] // 2
    rates = xp.asarray([op.base ** (-2.0 * i / x.shape[-1]) for i in range(half)])
    angle = xp.astype(at, xp.float64) * xp.astype(rates, xp.float64)
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


def _page_index(frame: Frame, _op: Any, _types: Types) -> Array:
    xp, first = frame.namespace.xp, frame.pages.first_page
    index = xp.arange(first, first + frame.num_pages, dtype=xp.int32)
    return xp.reshape(index, (1, -1, 1, 1))


def _token_position(frame: Frame, op: Any, types: Types) -> Array:
    xp, size = frame.namespace.xp, frame.pages.page_size
    offsets = xp.reshape(xp.arange(size, dtype=xp.int32), (1, 1, -1, 1))
    return _page_index(frame, op, types) * size + offsets


def _reserved_pages(frame: Frame, op: Any, types: Types) -> Array:
    index = _page_index(frame, op, types)
    first, last = frame.reserved.first, frame.reserved.last
    return (index < first) | (index >= frame.num_pages - last)


def _per_row(frame: Frame, value: int) -> Array:
    xp = frame.namespace.xp
    return xp.full((1, 1, 1, 1), value, dtype=xp.int32)


def _head_index(frame: Frame, _op: Any, _types: Types) -> Array:
    xp = frame.namespace.xp
    return xp.reshape(xp.arange(frame.num_heads, dtype=xp.int32), (-1, 1, 1, 1))


def _query_head_index(frame: Frame, op: Any, types: Types) -> Array:
    xp, group = frame.namespace.xp, frame.geometry.query_heads
    offsets = xp.reshape(xp.arange(group, dtype=xp.int32), (1, 1, -1, 1))
    return _head_index(frame, op, types) * group + offsets


LAYOUT: EvaluatorTable = {
    layout.Transpose: on_arrays(lambda xp, _op, x: xp.matrix_transpose(x)),
    layout.Reshape: on_arrays(lambda xp, op, x: xp.reshape(x, (*x.shape[:2], op.rows, op.columns))),
    layout.MaskSlice: on_arrays(_mask_slice),
    layout.Slice: on_arrays(lambda _xp, op, x: x[_range(op)]),
    layout.Concat: on_arrays(_concat),
    choose.Gather: on_arrays(_gather),
    layout.Rope: on_arrays(_rope),
}
POSITIONS: EvaluatorTable = {
    leaf.Constant: lambda frame, op, _types: frame.namespace.full((1, 1, 1, 1), op.value, op.dtype),
    position.PageIndex: _page_index,
    position.PageAge: lambda frame, op, types: frame.num_pages - 1 - _page_index(frame, op, types),
    position.TokenCount: lambda frame, _op, _types: frame.token_counts(),
    position.TokenPosition: _token_position,
    position.TokenValid: lambda frame, _op, _types: frame.token_valid(),
    position.ReservedPages: _reserved_pages,
    position.PageCount: lambda frame, _op, _types: _per_row(frame, frame.num_pages),
    position.StepIndex: lambda frame, _op, _types: _per_row(frame, frame.step),
    position.LayerIndex: lambda frame, _op, _types: _per_row(frame, frame.layer),
    position.HeadIndex: _head_index,
    position.QueryHeadIndex: _query_head_index,
}
