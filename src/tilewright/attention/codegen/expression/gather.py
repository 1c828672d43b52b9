"""Expressions of ops that move entries inside a page or row.

Blocks of Triton cannot be cut or joined, but their entries can be picked by position, and every
move is a choice of positions.
"""

import math
from dataclasses import dataclass, replace

from tilewright.attention.codegen.expression.elementwise import EmitterTable
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import Body, Operand
from tilewright.attention.graph import DType, Leading
from tilewright.attention.ops import choose, layout, linear


@dataclass(frozen=True, slots=True)
class Block:
    """A block by its name: the sizes of its inner axes without padding, and its leading extent."""

    name: str
    rows: int
    columns: int
    is_bool: bool
    lead: str

    @staticmethod
    def of(x: Operand) -> "Block":
        rows, columns = x.type.shape
        return Block(x.name, rows, columns, x.type.dtype is DType.BOOL, f"{x.name}.shape[0]")

    def size(self, axis: int) -> int:
        return (self.rows, self.columns)[axis - 1]

    def extents(self, axis: int = 0, size: int = 0) -> str:
        """Return the padded shape, with another size on an axis if one is named."""
        sizes = [self.lead, str(padded(self.rows)), str(padded(self.columns))]
        if axis:
            sizes[axis] = str(padded(size))
        return f"({', '.join(sizes)})"

    def named(self, body: Body, expression: str, axis: int, size: int) -> "Block":
        """Name the result of a move along one axis."""
        name = body.set_new("moved", expression)
        rows, columns = (size, self.columns) if axis == 1 else (self.rows, size)
        return Block(name, rows, columns, self.is_bool, self.lead)


def picked(x: Block, axis: int, index: str, size: int) -> str:
    """Pick ``size`` entries of x along an axis, padded, at positions that lie inside."""
    if x.size(axis) == 1:
        return f"tl.broadcast_to({x.name}, {x.extents(axis, size)})"
    source = f"{x.name}.to(tl.int8)" if x.is_bool else x.name  # no machine moves single bits
    found = f"tl.gather({source}, tl.broadcast_to({index}, {x.extents(axis, size)}), {axis})"
    return f"({found} != 0)" if x.is_bool else found


def _within(index: str, size: int) -> str:
    """Hold positions of padding inside: nobody reads what they pick."""
    return f"tl.minimum({index}, {size - 1})"


def _slice(op: layout.Slice, body: Body, x: Operand) -> str:
    size = op.end - op.start
    index = body.index(op.dim, size)
    index = f"{index} + {op.start}" if op.start else index
    return picked(Block.of(x), op.dim, _within(index, op.end), size)


def _concat(op: layout.Concat, body: Body, *operands: Operand) -> str:
    sizes = [item.type.shape[op.dim - 1] for item in operands]
    index = body.index(op.dim, sum(sizes))
    result, start = "", 0
    for item, size in zip(operands, sizes, strict=True):
        place = f"tl.maximum({index} - {start}, 0)" if start else index
        part = picked(Block.of(item), op.dim, _within(place, size), sum(sizes))
        result = f"tl.where({index} < {start}, {result}, {part})" if start else part
        start += size
    return result


def _reshape(op: layout.Reshape, body: Body, x: Operand) -> str:
    """Reshape in row-major order: a block without padding is the same, else entries are picked."""
    rows, columns = x.type.shape
    shape = f"({x.name}.shape[0], {padded(op.rows)}, {padded(op.columns)})"
    is_same = padded(rows) * columns == padded(op.rows) * op.columns
    if is_same and all(padded(size) == size for size in (columns, op.columns)):
        return f"tl.reshape({x.name}, {shape})"
    extent = padded(op.rows) * padded(op.columns)
    place = body.index(2, extent)
    clipped = _within(f"{place} % {padded(op.columns)}", op.columns)
    element = f"{place} // {padded(op.columns)} * {op.columns} + {clipped}"
    target = body.set_new("element", _within(element, op.rows * op.columns))
    source = f"{target} // {columns} * {padded(columns)} + {target} % {columns}"
    extents = padded(rows) * padded(columns)
    flat = body.set_new("flat", f"tl.reshape({x.name}, ({x.name}.shape[0], 1, {extents}))")
    whole = Block(flat, 1, extents, x.type.dtype is DType.BOOL, f"{x.name}.shape[0]")
    return f"tl.reshape({picked(whole, 2, source, extent)}, {shape})"


def _gather(op: choose.Gather, body: Body, x: Operand, index: Operand) -> str:
    """Gather entries: a position outside gives 0, so it picks entry 0 and is left out."""
    source = Block.of(x)
    size = source.size(op.dim)
    inside = body.set_new("inside", f"({index.name} >= 0) & ({index.name} < {size})")
    place = body.set_new("place", f"tl.where({inside}, {index.name}, 0)")
    if index.type.leading is Leading.PAGES and x.type.leading is not Leading.PAGES:
        source = replace(source, lead=f"{index.name}.shape[0]")
        spread = f"tl.broadcast_to({x.name}, {source.extents()})"
        source = source.named(body, spread, op.dim, source.size(op.dim))
    found = picked(source, op.dim, place, index.type.shape[op.dim - 1])
    return f"{inside} & {found}" if source.is_bool else f"tl.where({inside}, {found}, 0)"


def regrouped(x: Block, axis: int, k: int, fill: str, body: Body) -> str:
    """Put ``k`` neighbours each on an axis of their own behind ``axis``, padded with ``fill``."""
    size = x.size(axis)
    groups, members = padded(size // k), padded(k)
    others = [x.lead, str(padded(x.rows)), str(padded(x.columns))]
    others[axis : axis + 1] = [str(groups), str(members)]
    found = x.name
    if padded(size) != size or members != k:
        place = body.index(axis, groups * members)
        member = f"{place} % {members}"
        source = f"{place} // {members} * {k} + {_within(member, k)}"
        there = f"({member} < {k}) & ({place} < {size // k * members})"
        moved = picked(x, axis, _within(source, size), groups * members)
        found = f"tl.where({there}, {moved}, {fill})"
    return f"tl.reshape({found}, ({', '.join(others)}))"


def _kron(op: linear.Kron, body: Body, *operands: Operand) -> str:
    """Multiply along an axis: entry i is entry i // n of x times entry i % n of y."""
    integers = not any(item.is_float for item in operands)
    blocks = [Block.of(item) for item in operands]
    for axis in op.dim:
        left, right = (item.size(axis) for item in blocks)
        place = body.index(axis, left * right)
        places = (_within(f"{place} // {right}", left), f"{place} % {right}")
        blocks = [
            item.named(body, picked(item, axis, index, left * right), axis, left * right)
            for item, index in zip(blocks, places, strict=True)
        ]
    pairs = zip(blocks, operands, strict=True)
    moved = (replace(operand, name=item.name) for item, operand in pairs)
    return " * ".join(item.name if integers else item.as_float() for item in moved)


def _rope(op: layout.Rope, body: Body, x: Operand, position: Operand) -> str:
    """Turn each entry with its partner. Angles are in float64: positions are large."""
    width = x.type.shape[1]
    half = width // 2
    column = body.index(2, width)
    if op.interleaved:
        pair, partner, is_first = f"{column} // 2", f"{column} ^ 1", f"{column} % 2 == 0"
    else:
        pair, is_first = f"{column} % {half}", f"{column} < {half}"
        partner = f"tl.where({is_first}, {column} + {half}, {column} - {half})"
    rate = f"tl.exp(({pair}).to(tl.float64) * {-2.0 * math.log(op.base) / width!r})"
    angle = body.set_new("angle", f"{position.name}.to(tl.float64) * {rate}")
    other = body.set_new("partner", picked(Block.of(x), 2, _within(partner, width), width))
    turned = f"{other} * tl.sin({angle}).to(tl.float32)"
    straight = f"{x.name} * tl.cos({angle}).to(tl.float32)"
    return f"tl.where({is_first}, {straight} - {turned}, {turned} + {straight})"


MOVES: EmitterTable = {
    layout.Slice: _slice,
    layout.Concat: _concat,
    layout.Reshape: _reshape,
    choose.Gather: _gather,
    linear.Kron: _kron,
    layout.Rope: _rope,
}
