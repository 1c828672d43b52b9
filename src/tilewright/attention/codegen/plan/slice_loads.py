"""Slices become loads of a part: blocks of Triton cannot be cut, memory can."""

from collections.abc import Container
from dataclasses import replace
from typing import NamedTuple

from tilewright.attention.graph import Graph, Node, Op, Scope, keep, make_node, rebuild
from tilewright.attention.ops import layout, leaf, reduce

_REDUCTIONS = (reduce.Sum, reduce.Mean, reduce.Max, reduce.Min, reduce.L2Norm)


class Window(NamedTuple):
    """A part of a variable: its shape, and where it begins."""

    source: Node
    shape: tuple[int, ...]
    row: int = 0
    column: int = 0

    @property
    def name(self) -> str:
        """The variable, as names of arguments have it."""
        return str(getattr(self.source.op, "variable", "")).replace(".", "_")

    @property
    def skip(self) -> int:
        """Elements of the variable before the first one of the part."""
        return self.row * self.source.type.shape[1] + self.column


def push_slices(graph: Graph, elementwise: Container[type[Op]]) -> Graph:
    """Move slices towards the variables that they are parts of. Values do not change.

    They pass ops that look at one element at a time, and some more.
    """

    def transform(node: Node, inputs: tuple[Node, ...], scope: Scope) -> Node:
        kept = keep(node, inputs, scope)
        if not isinstance(kept.op, layout.Slice):
            return kept

        def sliced(op: layout.Slice, node: Node) -> Node:
            """Move ``op`` of a node inwards as far as it goes."""
            if node.type.shape[op.dim - 1] == 1 and op.end == 1:
                return node
            if isinstance(node.op, layout.Transpose):
                parts = [sliced(replace(op, dim=3 - op.dim), node.inputs[0])]
            elif isinstance(node.op, _REDUCTIONS) and node.op.dim == 3 - op.dim:
                parts = [sliced(op, node.inputs[0])]
            elif type(node.op) in elementwise and node.inputs:
                # an operand that broadcasts along the axis serves any part
                parts = [
                    item if item.type.shape[op.dim - 1] == 1 else sliced(op, item)
                    for item in node.inputs
                ]
            else:
                return make_node(op, (node,), scope, kept.source)
            return make_node(node.op, tuple(parts), scope, node.source)

        moved = sliced(kept.op, kept.inputs[0])
        return moved if moved.type == kept.type else kept

    return rebuild(graph, transform)


def window_of(node: Node) -> Window | None:
    """Return the part of a variable that a node is; None if computed, or with an axis of heads."""
    row, column, shape = 0, 0, node.type.shape
    while isinstance(node.op, layout.Slice):
        if node.op.dim == 1:
            row += node.op.start
        else:
            column += node.op.start
        (node,) = node.inputs
    kinds = leaf.Input | leaf.FieldRead | leaf.StateRead | leaf.ParameterRead
    if not isinstance(node.op, kinds) or len(node.type.shape) != 2:
        return None
    return Window(node, shape, row, column)
