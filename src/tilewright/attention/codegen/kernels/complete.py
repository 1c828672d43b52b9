"""The kernel of the cache side: summaries of pages that became complete, or are being filled."""

from tilewright.attention.codegen.expression.elementwise import EmitterTable
from tilewright.attention.codegen.expression.leaf_loads import load_entry, load_parameter
from tilewright.attention.codegen.expression.side import SideEmitter
from tilewright.attention.codegen.expression.stored import rounded, store
from tilewright.attention.codegen.plan.slice_loads import window_of
from tilewright.attention.codegen.source.builder import Body, name_values
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.graph import DType, FieldWrite, Graph, Node, Side, ValueType
from tilewright.attention.ops import leaf, position


def _tokens(body: Body) -> str:
    return body.page_tokens or str(body.page_size)


def _page(body: Body) -> str:
    body.need("new_pages", "int32 [new pages]: their logical positions")
    return "tl.load(new_pages + tl.program_id(0))"


_POSITIONS: EmitterTable = {
    position.LayerIndex: lambda _op, _operands, body: (
        f"tl.full((1, 1, 1), {body.need('layer', 'number of the layer')}, tl.int32)"
    ),
    position.HeadIndex: lambda _op, _operands, _body: "tl.full((1, 1, 1), head, tl.int32)",
    position.PageIndex: lambda _op, _operands, body: (
        f"{_page(body)} + tl.zeros((1, 1, 1), tl.int32)"
    ),
    position.TokenCount: lambda _op, _operands, body: (
        f"tl.full((1, 1, 1), {_tokens(body)}, tl.int32)"
    ),
    position.TokenPosition: lambda _op, _operands, body: (
        f"{_page(body)} * {body.page_size} + {body.index(1, body.page_size)}"
    ),
    position.TokenValid: lambda _op, _operands, body: (
        f"{body.index(1, body.page_size)} < {_tokens(body)}"
    ),
}


def emit_complete_pages(graph: Graph) -> Emitted | None:
    """Emit the kernel; return None if the flow keeps no summaries."""
    if not graph.field_writes:
        return None
    body = Body("page_tokens" if graph.partial_pages else None, graph.geometry.page_size)
    body.need("new_blocks", "integers [new pages]: where they lie in the pools")
    body.need("num_blocks", "blocks of the pools")
    body.add("""
        head = tl.program_id(1)
        block = tl.load(new_blocks + tl.program_id(0))
        entry = head * num_blocks + block
    """)
    if graph.partial_pages:
        body.need("new_tokens", "int32 [new pages]: tokens that are there")
        body.add("page_tokens = tl.load(new_tokens + tl.program_id(0))")
    loads = _Loads(graph)
    names = name_values(graph.nodes(Side.CACHE), body)
    loads.emitter = emitter = SideEmitter(body, names, loads, _POSITIONS)
    for write in graph.field_writes:
        _store(loads.targets[write.target], write, emitter)
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
            return self._written(name) if node is window.source else None
        pool = body.need(f"{name}_pool", _pool_holds(window.source.type))
        conditions = []
        if body.page_tokens is not None:
            token = body.index(1, node.type.shape[0])
            token = f"{token} + {window.row}" if window.row else token
            conditions.append(f"({token} < {body.page_tokens})")
        return load_entry(pool, "entry", node, window, conditions, 0.0, body)

    def _written(self, name: str) -> str:
        target = self.targets[name]
        return rounded(self.emitter.value(self._writes[name]), target)


def _pool_holds(kind: ValueType) -> str:
    rows, columns = kind.shape
    halves = ", two a byte" if kind.dtype is DType.INT4 else ""
    return f"{kind.dtype} [KV heads, blocks, {rows}, {columns}]{halves}"


def _store(target: ValueType, write: FieldWrite, emitter: SideEmitter) -> None:
    pool = emitter.body.need(f"{write.target.replace('.', '_')}_pool", _pool_holds(target))
    store(emitter.body, emitter.value(write.value), target, pool, "entry")
