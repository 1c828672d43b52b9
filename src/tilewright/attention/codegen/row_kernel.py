"""The kernels of ops over all pages of a row, or all KV heads of a request, but selections."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.compute_pages import scratch_holds
from tilewright.attention.codegen.elementwise import number
from tilewright.attention.codegen.kernel_file import Grid, Kernel, Stage
from tilewright.attention.codegen.naming import remark_of
from tilewright.attention.codegen.neighbour_pages import NEIGHBOURS
from tilewright.attention.codegen.row_text import row_preamble, row_start
from tilewright.attention.codegen.row_work import RowWork, identity
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.traffic import MARK_BYTES, NUMBER_BYTES, Traffic, column_bytes
from tilewright.attention.graph import DType, Graph, Node, Op
from tilewright.attention.ops import page_axis, reduce, selection

__all__ = ("ROW_OPS", "emit_row_op")

_INNER_LOOP = re.compile(r" {4}for \w+ in range\((-?\d+), (-?\d+|num_kv_heads)\):")
_COMBINED = {
    "sum": "{0} + {1}",
    "max": "tl.maximum({0}, {1})",
    "min": "tl.minimum({0}, {1})",
}
_REDUCTIONS: dict[type[Op], str] = {
    reduce.Sum: "sum",
    reduce.Mean: "sum",
    reduce.L2Norm: "sum",
    reduce.Max: "max",
    reduce.Min: "min",
}


def emit_row_op(
    graph: Graph, tiling: Tiling, node: Node, index: int, names: Mapping[Node, str]
) -> tuple[Kernel, str]:
    """From scratch memory to scratch memory; a program for each row and column."""
    body = Body(page_tokens=None)
    operands = tuple(names[item] for item in node.inputs)
    for item, memory in zip(node.inputs, operands, strict=True):
        body.need(memory, scratch_holds(item))
    body.need(names[node], scratch_holds(node))
    size = graph.geometry.page_size
    start = row_preamble(body, size)
    work = RowWork(node, operands, names[node], tiling.row_tile, size, body)
    body.lines += [f"# {remark_of(node)}", *start, "column = tl.program_id(1)"]
    lines = ROW_OPS[type(node.op)](work)
    body.lines += lines
    name = f"{node.op.name.lower()}_{index}"
    purpose = f"{node.op.name}: a program for each row and column."
    arguments, told = tuple(body.arguments), ((Stage.SCORING,), (_traffic(work, lines),))
    kernel = Kernel(name, Grid.ROW_COLUMNS, arguments, work.columns, *told)
    return kernel, kernel_text(name, purpose, body.arguments, body.lines)


def _traffic(work: RowWork, lines: Sequence[str]) -> Traffic:
    """A load or store in a loop over pages goes once over the row; in a loop inside it more often.

    Pages outside of a span are few, and are not counted.
    """
    page_bytes = head_bytes = 0
    turns: int | None = 1  # of the loop inside; None: one for each KV head
    for line in lines:
        inside = _INNER_LOOP.match(line)
        if inside is not None:
            turns = None if inside[2] == "num_kv_heads" else int(inside[2]) - int(inside[1])
        elif not line.startswith(" " * 8):
            turns = 1
        if not line.startswith("    ") or "mask=outside" in line:
            continue
        moved = _moved_bytes(work, line)
        if turns is None:
            head_bytes += moved
        else:
            page_bytes += turns * moved
    return Traffic(Stage.SCORING, page_bytes=page_bytes, head_bytes=head_bytes)


def _moved_bytes(work: RowWork, line: str) -> int:
    """Of a page with all its columns: bools take a byte in memory."""
    read, written = (
        column_bytes(
            work.columns,
            MARK_BYTES if item.type.dtype is DType.BOOL else NUMBER_BYTES,
            is_written=item is work.node,
        )
        for item in (work.source, work.node)
    )
    return line.count("tl.load(") * read + line.count("tl.store(") * written


def _reduction(work: RowWork) -> list[str]:
    op: Any = work.node.op
    reduction, dtype = _REDUCTIONS[type(op)], work.dtype
    empty = identity(reduction, work.node.type.dtype)
    final = "found"
    if isinstance(op, reduce.L2Norm):
        final = "tl.sqrt_rn(found)"
    elif isinstance(op, reduce.Mean):
        final = "tl.div_rn(found, tl.maximum(stop - first, 1).to(tl.float32))"
    squared = ["    value = value * value"] if isinstance(op, reduce.L2Norm) else []
    combined = _COMBINED[reduction].format("found", f"tl.{reduction}(value, 0)")
    return [
        *work.span(),
        f"found = tl.full((), {empty}, tl.{dtype})",
        *work.tiles(),
        f"    value = {work.load('page < stop', empty)}",
        *squared,
        f"    found = {combined}",
        f"found = tl.where(stop > first, {final}, 0)",
        work.store_row("found"),
    ]


def _arg_max(work: RowWork) -> list[str]:
    """The first page of the largest value; NaN is the smallest."""
    dtype = work.source.type.dtype.computed
    lowest = identity("max", dtype)
    value = work.load("page < stop", lowest, dtype=dtype)
    numbers = [f"    value = tl.where(value == value, value, {lowest})"] if dtype.is_float else []
    return [
        *work.span(),
        f"largest = tl.full((), {lowest}, tl.{dtype})",
        "found = tl.zeros((), tl.int32) + first",
        *work.tiles(),
        f"    value = {value}",
        *numbers,
        "    here = tl.max(value, 0)",
        "    place = tl.min(tl.where(value == here, page, 2147483647), 0)",
        "    found = tl.where(here > largest, place, found)",
        "    largest = tl.maximum(largest, here)",
        work.store_row("tl.where(stop > first, found, 0)"),
    ]


def _softmax(work: RowWork) -> list[str]:
    op: Any = work.node.op
    scale = "" if op.scale == 1.0 else f" * {number(op.scale)}"
    inside = work.load("page < stop", "0")
    value = f'tl.where(page < stop, {inside}{scale}, float("-inf"))'
    return [
        *work.span(),
        'largest = tl.full((), float("-inf"), tl.float32)',
        *work.tiles(),
        f"    value = {value}",
        "    largest = tl.maximum(largest, tl.max(value, 0))",
        'largest = tl.where(largest == float("-inf"), 0.0, largest)',
        "total = tl.zeros((), tl.float32)",
        *work.tiles(),
        f"    value = {value}",
        "    total += tl.sum(tl.exp(value - largest), 0)",
        "total = tl.where(total == 0.0, 1.0, total)",
        *work.tiles("0", "num_pages"),
        f"    value = {work.load('page < num_pages', '0')}",
        f"    share = tl.div_rn(tl.exp(value{scale} - largest), total)",
        "    value = tl.where((page >= first) & (page < stop), share, value)",
        f"    {work.store('value', 'page < num_pages')}",
    ]


def _normalize(work: RowWork) -> list[str]:
    return [
        *work.span(),
        "total = tl.zeros((), tl.float32)",
        *work.tiles(),
        f"    value = {work.load('page < stop', '0')}",
        "    total += tl.sum(value * value, 0)",
        "norm = tl.maximum(tl.sqrt_rn(total), 1e-12)",
        *work.tiles("0", "num_pages"),
        f"    value = {work.load('page < num_pages', '0')}",
        "    inside = (page >= first) & (page < stop)",
        "    value = tl.where(inside, tl.div_rn(value, norm), value)",
        f"    {work.store('value', 'page < num_pages')}",
    ]


def _across_heads(work: RowWork) -> list[str]:
    """Every head of a request computes the same value, in the same order of heads."""
    op: Any = work.node.op
    reduction = "sum" if op.kind is page_axis.Kind.MEAN else str(op.kind)
    empty = identity(reduction, DType.FLOAT32)
    memory = work.operands[0]
    row_start(work.body, memory)
    factor = f" * {work.columns}" if work.columns > 1 else ""
    place = f"{memory} + (request * num_kv_heads + other) * {memory}_row"
    place += " + column" if work.is_per_row else f" + page{factor} + column"
    mask = "" if work.is_per_row else ", mask=page < num_pages, other=0"
    shape = "()" if work.is_per_row else f"({work.tile},)"
    lines = [
        f"found = tl.full({shape}, {empty}, tl.float32)",
        "for other in range(0, num_kv_heads):",
        f"    value = tl.load({place}{mask}).to(tl.float32)",
        f"    found = {_COMBINED[reduction].format('found', 'value')}",
    ]
    if op.kind is page_axis.Kind.MEAN:
        lines.append("found = found / num_kv_heads")
    if work.is_per_row:
        return [*lines, work.store_row("found")]
    lines.append(work.store("found", "page < num_pages"))
    return [*work.tiles("0", "num_pages"), *(f"    {line}" for line in lines)]


def _selected_tokens(work: RowWork) -> list[str]:
    """Tokens of the pages that are chosen or reserved; only the last page may be short."""
    work.body.need("first_reserved", "pages that every row reads at its beginning")
    work.body.need("last_reserved", "and at its end")
    size = work.page_size
    return [
        "found = tl.zeros((), tl.int32)",
        *work.tiles("0", "num_pages"),
        f"    chosen = {work.load('page < num_pages', '0')}",
        "    read = (chosen != 0) | (page < first_reserved) | (page >= num_pages - last_reserved)",
        f"    tokens = tl.minimum(num_tokens - page * {size}, {size})",
        "    found += tl.sum(tl.where(read & (page < num_pages), tokens, 0), 0)",
        work.store_row("found"),
    ]


RowEmitter = Callable[[RowWork], list[str]]

ROW_OPS: dict[type[Op], RowEmitter] = {
    **dict.fromkeys(_REDUCTIONS, _reduction),
    reduce.ArgMax: _arg_max,
    page_axis.Softmax: _softmax,
    page_axis.Normalize: _normalize,
    page_axis.AcrossHeads: _across_heads,
    selection.SelectedTokens: _selected_tokens,
    **NEIGHBOURS,
}
"""Lines of a kernel for ops that need more than the page at hand."""
