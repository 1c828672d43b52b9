"""Emitting the nodes of one side into a kernel: leaves by loads, the others by expressions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.attention.codegen.expression.elementwise import ELEMENTWISE, EmitterTable
from tilewright.attention.codegen.expression.inner import INNER, product_elements
from tilewright.attention.codegen.expression.weighted import is_weighted, weighted_expression
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.source.builder import Body, Operand, remark_of
from tilewright.attention.graph import Leading, Node
from tilewright.attention.ops import position
from tilewright.errors import CodegenError

INDEXER_POSITIONS: EmitterTable = {
    position.PageIndex: lambda _op, _operands, _body: "page",
    position.PageAge: lambda _op, _operands, _body: "num_pages - 1 - page",
    position.TokenCount: lambda _op, _operands, _body: "page_tokens",
    position.ReservedPages: lambda _op, _operands, body: (
        f"(page < {body.need('first_reserved')}) | "
        f"(page >= num_pages - {body.need('last_reserved')})"
    ),
    position.PageCount: lambda _op, _operands, _body: "tl.full((1, 1, 1), num_pages, tl.int32)",
    position.LayerIndex: lambda _op, _operands, body: (
        f"tl.full((1, 1, 1), {body.need('layer', 'number of the layer')}, tl.int32)"
    ),
    position.StepIndex: lambda _op, _operands, body: (
        f"tl.load({body.need('step_ptr', 'int32 [requests]: decode steps made before')}"
        " + request + tl.zeros((1, 1, 1), tl.int32))"
    ),
    position.QueryHeadIndex: lambda _op, _operands, body: (
        f"(head * {body.query_heads} + {body.index(1, body.query_heads)}).to(tl.int32)"
    ),
    position.TokenPosition: lambda _op, _operands, body: (
        f"page * {body.page_size} + {body.index(1, body.page_size)}"
    ),
    position.TokenValid: lambda _op, _operands, body: (
        f"{body.index(1, body.page_size)} < page_tokens"
    ),
    position.HeadIndex: lambda _op, _operands, _body: "tl.full((1, 1, 1), head, tl.int32)",
}


Loader = Callable[[Node, Body], str | None]
"""The expression of a value that comes from memory; None if it does not."""


def refuse(node: Node, why: str, expected: str) -> CodegenError:
    where = f"{node.op.name} at {node.source or 'no line'}"
    return CodegenError(where, why, expected, "run this flow on the reference backend")


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
        is_loaded = expression is not None
        if expression is None and is_weighted(node):
            expression = weighted_expression(node, self.value, self.body)
        elif expression is None:
            operands = tuple(self.value(item) for item in node.inputs)
            expression = self._expression(node, operands)
        self._note_size(node, is_loaded)
        self.body.add(f"{self.names[node]} = {expression}", remark_of(node))
        return Operand(self.names[node], node.type)

    def _expression(self, node: Node, operands: tuple[Operand, ...]) -> str:
        kind = type(node.op)
        emitter = ELEMENTWISE.get(kind) or INNER.get(kind) or self.positions.get(kind)
        if emitter is None or getattr(node.op, "dim", None) == 0:
            tables = (ELEMENTWISE, INNER, self.positions)
            known = ", ".join(sorted({op.__name__ for table in tables for op in table}))
            raise refuse(node, f"an op without a kernel: {node.op}", f"one of {known}")
        return emitter(node.op, operands, self.body)

    def _note_size(self, node: Node, is_loaded: bool) -> None:
        if node.type.leading is not Leading.PAGES:
            return
        rows, columns = node.type.shape
        wide = 0 if is_loaded else product_elements(node)
        block = padded(rows) * padded(columns)
        self.largest_block = max(self.largest_block, block, padded(max(wide, 1)))
