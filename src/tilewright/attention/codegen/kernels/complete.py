"""The kernel of the cache side: summaries of pages that became complete, or are being filled."""

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
    loads = _Loads(graph)
    names = name_values(graph.nodes(Side.CACHE), body)
    loads.emitter = emitter = SideEmitter(body, names, loads, CACHE_POSITIONS)
    for write in graph.field_writes:
        target = loads.targets[write.target]
        pool = need_pool(write.target.replace(".", "_"), target, body)
        store(body, emitter.value(write.value), target, pool, "entry")
    purpose = "Summaries of new pages: a program for each page and KV head."
    return Emitted.of("complete_pages", purpose, body, Grid.NEW_PAGES)


class _Loads:
    """Tokens of the page, parameters, and summaries that were written before, as they are kept."""

    emitter: SideEmitter

    def __init__(self, graph: Graph) -> None:
        self._reserved = graph.geometry.reserved_fields
        self._writes = {write.target: write.value for write in graph.field_writes}
        self.targets = {item.name: item.type for item in graph.fields}
        self.targets |= {item.name: item.type for item in graph.states}

    def __call__(self, node: Node, body: Body) -> str | None:
        window = window_of(node)
        if window is None or not isinstance(window.source.op, leaf.FieldRead):
            return load_parameter(node, body)
        name = window.source.op.variable
        if name not in self._reserved:
            if node is not window.source:
                return None
            return rounded(self.emitter.value(self._writes[name]), self.targets[name])
        pool = need_pool(name, window.whole, body)
        conditions = [] if body.page_tokens is None else [token_condition(window, body)]
        return load_entry(pool, "entry", window, conditions, body)
