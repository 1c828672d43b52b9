"""The kernels of ops over all pages of a row, or all KV heads of a request, but selections."""

from typing import Any

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.compute_pages import scratch_holds
from tilewright.attention.codegen.elementwise import number
from tilewright.attention.codegen.kernel_file import Grid, Kernel
from tilewright.attention.codegen.naming import remark_of
from tilewright.attention.codegen.row_text import row_preamble, row_start
from tilewright.attention.codegen.side import refuse
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import FORMAT, DType, Graph, Node, Span
from tilewright.attention.ops import page_axis, reduce

__all__ = ("emit_row_op",)

_SUM, _MAX, _MIN = (
    ("sum", "{0} + {1}"),
    ("max", "tl.maximum({0}, {1})"),
    ("min", "tl.minimum({0}, {1})"),
)
_REDUCTIONS: dict[type[reduce.Reduction], tuple[str, str]] = {
    reduce.Sum: _SUM,
    reduce.Mean: _SUM,
    reduce.L2Norm: _SUM,
    reduce.Max: _MAX,
    reduce.Min: _MIN,
}
_POOLED = {
    page_axis.Kind.SUM: _SUM,
    page_axis.Kind.MEAN: _SUM,
    page_axis.Kind.MAX: _MAX,
    page_axis.Kind.MIN: _MIN,
}
_KNOWN = "TopK, ApproxTopK, Threshold, Softmax, AcrossHeads, Sum, Mean, Max, Min or L2Norm"


def emit_row_op(
    graph: Graph, tiling: Tiling, node: Node, index: int, *, operand: str, result: str
) -> tuple[Kernel, str]:
    """From one place of scratch memory to another; a program for each row and column."""
    body = Body(page_tokens=None)
    source = node.inputs[0]
    columns = source.type.num_elements
    if source.type.dtype.computed is DType.BOOL:
        raise refuse(node, "bools over all pages", "numbers")
    body.need(operand, scratch_holds(source))
    body.need(result, scratch_holds(node))
    start = row_preamble(body, graph.geometry.page_size)
    row_start(body, operand)
    row_start(body, result)
    body.lines += [f"# {remark_of(node)}", *start, "column = tl.program_id(1)"]
    match node.op:
        case page_axis.Softmax():
            body.lines += _softmax_lines(node.op, operand, result, columns, tiling.row_tile, body)
        case page_axis.AcrossHeads():
            per_row = source.type.format is FORMAT.BATCHED
            body.lines += _across_heads_lines(node.op, operand, result, columns, tiling, per_row)
        case _ if type(node.op) in _REDUCTIONS:
            body.lines += _reduction_lines(node, operand, result, columns, tiling.row_tile, body)
        case _:
            raise refuse(node, f"an op over all pages: {node.op}", _KNOWN)
    name = f"{node.op.name.lower()}_{index}"
    purpose = f"{node.op.name}: a program for each row and column."
    kernel = Kernel(name, Grid.ROW_COLUMNS, tuple(body.arguments), columns)
    return kernel, kernel_text(name, purpose, body.arguments, body.lines)


def _span_lines(span: Span, body: Body) -> list[str]:
    """The pages that an op sees, as ``first`` and ``stop``."""
    if span is Span.ALL:
        return ["first = 0", "stop = num_pages"]
    body.need("first_reserved", "pages that every row reads at its beginning")
    body.need("last_reserved", "and at its end")
    return [
        "stop = tl.maximum(num_pages - last_reserved, 0)",
        "first = tl.minimum(first_reserved, stop)",
    ]


def _place(name: str, columns: int) -> str:
    factor = f" * {columns}" if columns > 1 else ""
    return f"{name} + row * {name}_row + page{factor} + column"


def _identity(reduction: str, dtype: DType) -> str:
    if reduction == "sum":
        return "0"
    if dtype.is_float:
        return 'float("-inf")' if reduction == "max" else 'float("inf")'
    return "-2147483648" if reduction == "max" else "2147483647"


def _reduction_lines(
    node: Node, operand: str, result: str, columns: int, tile: int, body: Body
) -> list[str]:
    op: Any = node.op
    reduction, combine = _REDUCTIONS[type(op)]
    dtype = node.type.dtype.computed
    identity = _identity(reduction, dtype)
    squared = isinstance(op, reduce.L2Norm)
    final = "found"
    if squared:
        final = "tl.sqrt_rn(found)"
    elif isinstance(op, reduce.Mean):
        final = "tl.div_rn(found, tl.maximum(stop - first, 1).to(tl.float32))"
    return [
        *_span_lines(op.span, body),
        f"found = tl.full((), {identity}, tl.{dtype})",
        f"for start in range(first, stop, {tile}):",
        f"    page = start + tl.arange(0, {tile})",
        f"    value = tl.load({_place(operand, columns)}, mask=page < stop, other={identity})",
        f"    value = value.to(tl.{dtype})",
        *(["    value = value * value"] if squared else []),
        f"    found = {combine.format('found', f'tl.{reduction}(value, 0)')}",
        f"found = tl.where(stop > first, {final}, 0)",
        f"tl.store({result} + row * {result}_row + column, found)",
    ]


def _softmax_lines(
    op: page_axis.Softmax, operand: str, result: str, columns: int, tile: int, body: Body
) -> list[str]:
    scale = "" if op.scale == 1.0 else f" * {number(op.scale)}"
    load = f"tl.load({_place(operand, columns)}, mask={{0}}, other={{1}}).to(tl.float32)"
    tiles = [
        f"for start in range(first, stop, {tile}):",
        f"    page = start + tl.arange(0, {tile})",
    ]
    inside = load.format("page < stop", 'float("-inf")')
    return [
        *_span_lines(op.span, body),
        'largest = tl.full((), float("-inf"), tl.float32)',
        *tiles,
        f"    value = {inside}{scale}",
        "    largest = tl.maximum(largest, tl.max(value, 0))",
        'largest = tl.where(largest == float("-inf"), 0.0, largest)',
        "total = tl.zeros((), tl.float32)",
        *tiles,
        f"    value = {inside}{scale}",
        "    total += tl.sum(tl.exp(value - largest), 0)",
        "total = tl.where(total == 0.0, 1.0, total)",
        f"for start in range(0, num_pages, {tile}):",
        f"    page = start + tl.arange(0, {tile})",
        f"    value = {load.format('page < num_pages', '0')}",
        f"    share = tl.div_rn(tl.exp(value{scale} - largest), total)",
        "    value = tl.where((page >= first) & (page < stop), share, value)",
        f"    tl.store({_place(result, columns)}, value, mask=page < num_pages)",
    ]


def _across_heads_lines(
    op: page_axis.AcrossHeads,
    operand: str,
    result: str,
    columns: int,
    tiling: Tiling,
    per_row: bool,
) -> list[str]:
    """Every head of a request computes the same value, in the same order of heads."""
    reduction, combine = _POOLED[op.kind]
    identity = _identity(reduction, DType.FLOAT32)
    factor = f" * {columns}" if columns > 1 else ""
    tile = tiling.row_tile
    entry = f"(request * num_kv_heads + other) * {operand}_row"
    places = entry if per_row else f"{entry} + page{factor}"
    mask = "" if per_row else ", mask=page < num_pages, other=0"
    lines = [
        f"found = tl.full({'()' if per_row else f'({tile},)'}, {identity}, tl.float32)",
        "for other in range(0, num_kv_heads):",
        f"    value = tl.load({operand} + {places} + column{mask}).to(tl.float32)",
        f"    found = {combine.format('found', 'value')}",
    ]
    if op.kind is page_axis.Kind.MEAN:
        lines.append("found = found / num_kv_heads")
    if per_row:
        return [*lines, f"tl.store({result} + row * {result}_row + column, found)"]
    lines.append(f"tl.store({_place(result, columns)}, found, mask=page < num_pages)")
    return [
        f"for start in range(0, num_pages, {tile}):",
        f"    page = start + tl.arange(0, {tile})",
        *(f"    {line}" for line in lines),
    ]
