"""Expressions of ops that say where a page stands."""

from tilewright.attention.codegen.elementwise import EmitterTable
from tilewright.attention.ops import position

__all__ = ("INDEXER_POSITIONS",)

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
