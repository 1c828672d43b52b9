"""Emitting the nodes of one side into a kernel: leaves by loads, the others by expressions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from tilewright.attention.codegen.expression.elementwise import ELEMENTWISE
from tilewright.attention.codegen.expression.inner import INNER
from tilewright.attention.codegen.expression.weighted import is_weighted, weighted_expression
from tilewright.attention.codegen.source.builder import Body, Names, Operand, remark_of
from tilewright.attention.graph import Node, Op
from tilewright.attention.ops import position
from tilewright.errors import CodegenError

_FULL = "tl.full((1, 1, 1), {}, tl.int32)".format
PositionTable: TypeAlias = Mapping[type[Op], str | Callable[[Body], str]]
"""Expressions of ops without operands, some of which take arguments."""

INDEXER_POSITIONS: PositionTable = {
    position.PageIndex: "page",
    position.PageAge: "num_pages - 1 - page",
    position.TokenCount: "page_tokens",
    position.ReservedPages: lambda body: (
        f"(page < {body.need('first_reserved', '')}) | "
        f"(page >= num_pages - {body.need('last_reserved', '')})"
    ),
    position.PageCount: _FULL("num_pages"),
    position.LayerIndex: lambda body: _FULL(body.need("layer")),
    position.StepIndex: lambda body: (
        f"tl.load({body.need('step_ptr')} + request + tl.zeros((1, 1, 1), tl.int32))"
    ),
    position.QueryHeadIndex: lambda body: (
        f"(head * {body.query_heads} + {body.index(1, body.query_heads)}).to(tl.int32)"
    ),
    position.TokenPosition: lambda body: (
        f"page * {body.page_size} + {body.index(1, body.page_size)}"
    ),
    position.TokenValid: lambda body: f"{body.index(1, body.page_size)} < page_tokens",
    position.HeadIndex: _FULL("head"),
}


def _page(body: Body) -> str:
    return f"tl.load({body.need('new_pages')} + tl.program_id(0))"


def _tokens(body: Body) -> str:
    return body.page_tokens or str(body.page_size)


CACHE_POSITIONS: PositionTable = {
    position.LayerIndex: INDEXER_POSITIONS[position.LayerIndex],
    position.HeadIndex: INDEXER_POSITIONS[position.HeadIndex],
    position.PageIndex: lambda body: f"{_page(body)} + tl.zeros((1, 1, 1), tl.int32)",
    position.TokenCount: lambda body: _FULL(_tokens(body)),
    position.TokenPosition: lambda body: (
        f"{_page(body)} * {body.page_size} + {body.index(1, body.page_size)}"
    ),
    position.TokenValid: lambda body: f"{body.index(1, body.page_size)} < {_tokens(body)}",
}


@dataclass(slots=True, kw_only=True)
class SideEmitter(ABC):
    """Emits each node once, inputs first, in the order in which they are asked for."""

    body: Body
    names: Names
    positions: ClassVar[PositionTable]
    done: dict[Node, Operand] = field(default_factory=dict)
    loaded: set[Node] = field(default_factory=set)

    @abstractmethod
    def load(self, node: Node) -> str | None:
        """Return the expression of a value that comes from memory; None if it does not."""

    def value(self, node: Node) -> Operand:
        if node not in self.done:
            expression = self.load(node)
            if expression is not None:
                self.loaded.add(node)
            elif is_weighted(node):
                expression = weighted_expression(node, self.value, self.body)
            else:
                expression = self._expression(node, *map(self.value, node.inputs))
            self.body.add(f"{self.names[node]} = {expression}", remark=remark_of(node))
            self.done[node] = Operand(self.names[node], node.type)
        return self.done[node]

    def _expression(self, node: Node, *operands: Operand) -> str:
        kind = type(node.op)
        emitter = ELEMENTWISE.get(kind) or INNER.get(kind)
        if emitter is not None and getattr(node.op, "dim", None) != 0:
            return emitter(node.op, self.body, *operands)
        if kind in self.positions:
            text = self.positions[kind]
            return text if isinstance(text, str) else text(self.body)
        known = ", ".join(sorted({op.__name__ for op in (*ELEMENTWISE, *INNER, *self.positions)}))
        where = f"{node.op.name} at {node.source or 'no line'}"
        fix = "run this flow on the reference backend"
        raise CodegenError(where, f"an op without a kernel: {node.op}", f"one of {known}", fix)
