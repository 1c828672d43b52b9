"""Emitting the nodes of one side into a kernel: leaves by loads, the others by expressions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.attention.codegen.body import Body, NoTextError, Operand, padded
from tilewright.attention.codegen.elementwise import ELEMENTWISE, EmitterTable
from tilewright.attention.codegen.inner import INNER, product_elements
from tilewright.attention.codegen.naming import remark_of
from tilewright.attention.graph import DType, Node
from tilewright.errors import CodegenError

__all__ = ("SideEmitter", "check_stored", "refuse")

Loader = Callable[[Node, Body], str | None]
"""The expression of a value that comes from memory; None if it does not."""


def refuse(node: Node, why: str, expected: str) -> CodegenError:
    where = f"{node.op.name} at {node.source or 'no line'}"
    return CodegenError(where, why, expected, "run this flow on the reference backend")


def check_stored(name: str, dtype: DType) -> None:
    """Packed elements have no pointer of their own."""
    if dtype is DType.INT4:
        expected = "elements of whole bytes"
        raise CodegenError(f"field {name!r}", "int4", expected, "keep it in int8")


@dataclass(slots=True)
class SideEmitter:
    """Emits each node once, inputs first, in the order in which they are asked for."""

    body: Body
    names: Mapping[Node, str]
    load: Loader
    positions: EmitterTable
    largest_block: int = 1  # elements a page of the widest block so far
    _done: dict[Node, Operand] = field(default_factory=dict)

    def value(self, node: Node) -> Operand:
        if node not in self._done:
            self._done[node] = self._emit(node)
        return self._done[node]

    def _emit(self, node: Node) -> Operand:
        expression = self.load(node, self.body)
        operands: tuple[Operand, ...] = ()
        if expression is None:
            operands = tuple(self.value(item) for item in node.inputs)
            expression = self._expression(node, operands)
        self._note_size(node, operands)
        self.body.add(f"{self.names[node]} = {expression}", remark_of(node))
        return Operand(self.names[node], node.type)

    def _expression(self, node: Node, operands: tuple[Operand, ...]) -> str:
        kind = type(node.op)
        emitter = ELEMENTWISE.get(kind) or INNER.get(kind) or self.positions.get(kind)
        if emitter is None or getattr(node.op, "dim", None) == 0:
            tables = (ELEMENTWISE, INNER, self.positions)
            known = ", ".join(sorted({op.__name__ for table in tables for op in table}))
            raise refuse(node, f"an op without a kernel: {node.op}", f"one of {known}")
        try:
            return emitter(node.op, operands, self.body)
        except NoTextError as error:
            types = ", ".join(str(item.type) for item in operands)
            raise refuse(node, f"{node.op} of {types}", "another type of operand") from error

    def _note_size(self, node: Node, operands: tuple[Operand, ...]) -> None:
        rows, columns = node.type.shape if len(node.type.shape) == 2 else (1, 1)
        block = padded(rows) * padded(columns)
        self.largest_block = max(
            self.largest_block, block, padded(max(product_elements(node.op, operands), 1))
        )
