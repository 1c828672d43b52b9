"""Position, age and length as values, and constants."""

from typing import Any

from tilewright.attention.backends.reference.evaluator import EvaluatorTable
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.graph import Types
from tilewright.attention.ops import leaf, position

Nothing = tuple[Array, ...]


def _page_index(_op: Any, _operands: Nothing, _types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    first = frame.pages.first_page
    index = xp.arange(first, first + frame.num_pages, dtype=xp.int32)
    return xp.reshape(index, (1, -1, 1, 1))


def _page_age(op: Any, operands: Nothing, types: Types, frame: Frame) -> Array:
    return frame.num_pages - 1 - _page_index(op, operands, types, frame)


def _token_count(_op: Any, _operands: Nothing, _types: Types, frame: Frame) -> Array:
    return frame.token_counts()


def _token_position(op: Any, operands: Nothing, types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    size = frame.pages.page_size
    offsets = xp.reshape(xp.arange(size, dtype=xp.int32), (1, 1, -1, 1))
    return _page_index(op, operands, types, frame) * size + offsets


def _token_valid(_op: Any, _operands: Nothing, _types: Types, frame: Frame) -> Array:
    return frame.token_valid()


def _reserved_pages(op: Any, operands: Nothing, types: Types, frame: Frame) -> Array:
    index = _page_index(op, operands, types, frame)
    first, last = frame.reserved.first, frame.reserved.last
    return (index < first) | (index >= frame.num_pages - last)


def _per_row(frame: Frame, value: int) -> Array:
    xp = frame.namespace.xp
    return xp.full((1, 1, 1, 1), value, dtype=xp.int32)


def _head_index(_op: Any, _operands: Nothing, _types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    return xp.reshape(xp.arange(frame.num_heads, dtype=xp.int32), (-1, 1, 1, 1))


def _query_head_index(op: Any, operands: Nothing, types: Types, frame: Frame) -> Array:
    xp = frame.namespace.xp
    group = frame.geometry.query_heads
    offsets = xp.reshape(xp.arange(group, dtype=xp.int32), (1, 1, -1, 1))
    return _head_index(op, operands, types, frame) * group + offsets


def _constant(op: leaf.Constant, _operands: Nothing, _types: Types, frame: Frame) -> Array:
    return frame.namespace.full((1, 1, 1, 1), op.value, op.dtype)


POSITIONS: EvaluatorTable = {
    leaf.Constant: _constant,
    position.PageIndex: _page_index,
    position.PageAge: _page_age,
    position.TokenCount: _token_count,
    position.TokenPosition: _token_position,
    position.TokenValid: _token_valid,
    position.ReservedPages: _reserved_pages,
    position.PageCount: lambda _op, _x, _types, frame: _per_row(frame, frame.num_pages),
    position.StepIndex: lambda _op, _x, _types, frame: _per_row(frame, frame.step),
    position.LayerIndex: lambda _op, _x, _types, frame: _per_row(frame, frame.layer),
    position.HeadIndex: _head_index,
    position.QueryHeadIndex: _query_head_index,
}
