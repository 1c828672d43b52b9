"""The kernel of the cache side: summaries of pages that became complete, or are being filled."""

from dataclasses import dataclass

from tilewright.attention.codegen.expression.memory import (
    load_entry,
    load_parameter,
    need_pool,
    rounded,
    store,
    token_condition,
)
from tilewright.attention.codegen.expression.side import CACHE_POSITIONS, SideEmitter
from tilewright.attention.codegen.plan.slice_loads import window_of
from tilewright.attention.codegen.source.builder import Body, name_values
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.graph import Graph, Node, Side
from tilewright.attention.ops import leaf


def emit_complete_pages(graph: Graph) -> Emitted | None:
    """Emit the kernel; return None if the flow keeps no summaries."""
    if not graph.field_writes:
        return None
    body = Body("page_tokens" if graph.partial_pages else None, graph.geometry.page_size)
    body.need_all("new_blocks", "num_blocks")
    body.add("""
        head = tl.program_id(1)
        block = tl.load(new_blocks + tl.program_id(0))
        entry = head * num_blocks + block
    """)
    if graph.partial_pages:
        body.need("new_tokens")
        body.add("page_tokens = tl.load(new_tokens + tl.program_id(0))")
    names = name_values(graph.nodes(Side.CACHE), body)
    emitter = _PageEmitter(body=body, names=names, graph=graph)
    targets = graph.scope(Side.CACHE).variables
    for write in graph.field_writes:
        target = targets[write.target]
        pool = need_pool(write.target.replace(".", "_"), target, body)
        store(body, emitter.value(write.value), target, pool, "entry")
    purpose = "Summaries of new pages: a program for each page and KV head."
    return Emitted.of("complete_pages", purpose, body, Grid.NEW_PAGES)


@dataclass(slots=True, kw_only=True)
class _PageEmitter(SideEmitter):
    """Loads tokens of the page, parameters, and summaries that were written before, as kept."""

    positions = CACHE_POSITIONS
    graph: Graph

    def load(self, node: Node) -> str | None:
        window, body = window_of(node), self.body
        if window is None or not isinstance(window.source.op, leaf.FieldRead):
            return load_parameter(node, body)
        name = window.source.op.variable
        if name not in self.graph.geometry.reserved_fields:
            if node is not window.source:
                return None
            (value,) = (item.value for item in self.graph.field_writes if item.target == name)
            return rounded(self.value(value), window.source.type)
        pool = need_pool(name, window.source.type, body)
        conditions = [] if body.page_tokens is None else [token_condition(window, body)]
        return load_entry(pool, "entry", window, conditions, body)
