"""The kernel of the cache side: summaries of pages that became complete."""

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.elementwise import EmitterTable
from tilewright.attention.codegen.kernel_file import Grid, Kernel
from tilewright.attention.codegen.naming import name_values
from tilewright.attention.codegen.side import SideEmitter, check_stored, refuse
from tilewright.attention.codegen.slice_loads import window_of
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.graph import DType, FieldWrite, Graph, Node, Side
from tilewright.attention.ops import position
from tilewright.errors import CodegenError

__all__ = ("emit_complete_pages",)

_SATURATING = (DType.FLOAT8_E4M3, DType.FLOAT8_E5M2, DType.INT8)

_POSITIONS: EmitterTable = {
    position.LayerIndex: lambda _op, _operands, body: (
        f"tl.full((1, 1, 1), {body.need('layer', 'number of the layer')}, tl.int32)"
    ),
    position.HeadIndex: lambda _op, _operands, _body: "tl.full((1, 1, 1), head, tl.int32)",
}


def emit_complete_pages(graph: Graph) -> tuple[Kernel, str] | None:
    """The kernel and its text; None if the flow keeps no summaries."""
    if not graph.field_writes:
        return None
    body = Body(page_tokens=None)
    body.need("new_blocks", "int64 [new pages]: where they lie in the pools")
    body.need("num_blocks", "blocks of the pools")
    body.lines += [
        "head = tl.program_id(1)",
        "block = tl.load(new_blocks + tl.program_id(0))",
        "entry = head * num_blocks + block",
    ]
    names = name_values(graph.nodes(Side.CACHE), body)
    emitter = SideEmitter(body, names, lambda node, part: _load(graph, node, part), _POSITIONS)
    for write in graph.field_writes:
        _store(graph, write, emitter)
    purpose = "Summaries of pages that became complete: a program for each page and KV head."
    kernel = Kernel("complete_pages", Grid.NEW_PAGES, tuple(body.arguments))
    return kernel, kernel_text(kernel.name, purpose, body.arguments, body.lines)


def _load(graph: Graph, node: Node, body: Body) -> str | None:
    window = window_of(node)
    if window is None:
        return None
    name, whole = str(getattr(window.source.op, "variable", "")), window.source.type
    if name not in graph.geometry.reserved_fields:
        raise refuse(node, f"a read of the summary {name!r}", "reads of keys and values")
    rows, columns = whole.shape
    pool = body.need(f"{name}_pool", f"{whole.dtype} [KV heads, blocks, {rows}, {columns}]")
    skip = window.row * window.row_length + window.column
    place = body.place(pool, "entry", node.type.shape, whole.shape, skip)
    inside = body.inside(node.type.shape)
    mask = f", mask={' & '.join(inside)}, other=0" if inside else ""
    return f"tl.load({place}{mask}).to(tl.float32)"


def _store(graph: Graph, write: FieldWrite, emitter: SideEmitter) -> None:
    body = emitter.body
    (target,) = (item.type for item in graph.fields if item.name == write.target)
    check_stored(write.target, target.dtype)
    if target.dtype in _SATURATING:
        where, expected = f"field {write.target!r}", "float32, float16, bfloat16, int32 or bool"
        raise CodegenError(where, f"summaries in {target.dtype}", expected, "keep it wider")
    value = emitter.value(write.value)
    rows, columns = target.shape
    pool = body.need(
        f"{write.target}_pool", f"{target.dtype} [KV heads, blocks, {rows}, {columns}]"
    )
    place = body.place(pool, "entry", target.shape, target.shape)
    inside = body.inside(target.shape)
    mask = f", mask={' & '.join(inside)}" if inside else ""
    body.add(f"tl.store({place}, {value.name}{mask})")
