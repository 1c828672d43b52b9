"""The kernels of ops over all pages of a row, or all KV heads of a request, but selections."""

import ast
from collections.abc import Callable, Sequence

from tilewright.attention.codegen.expression.elementwise import identity, number
from tilewright.attention.codegen.expression.inner import REDUCTIONS
from tilewright.attention.codegen.expression.memory import scratch_holds
from tilewright.attention.codegen.kernels.row_work import COMBINED, NEIGHBOURS, OUTSIDE, RowWork
from tilewright.attention.codegen.plan.traffic import (
    MARK_BYTES,
    NUMBER_BYTES,
    Stage,
    Traffic,
    column_bytes,
)
from tilewright.attention.codegen.source.builder import Body, Names, remark_of
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm, row_preamble, row_start
from tilewright.attention.codegen.source.tree import Source, Statement, called, joined, lines
from tilewright.attention.graph import FORMAT, DType, Node, Op
from tilewright.attention.ops import page_axis, reduce, selection


def emit_row_op(form: RowForm, node: Node, index: int, names: Names) -> Emitted:
    """Emit an op from scratch memory to scratch memory; a program for each row and column."""
    body = Body()
    operands = tuple(names[item] for item in node.inputs)
    for item, memory in zip(node.inputs, operands, strict=True):
        body.need(memory, scratch_holds(item))
    body.need(names[node], scratch_holds(node))
    work = RowWork(node, operands, names[node], form.tiling.row_tile, form.sizes.page_size, body)
    body.add(row_preamble(body, form.sizes.page_size), remark=remark_of(node))
    body.add("column = tl.program_id(1)")
    body.add(ROW_OPS[type(node.op)](work))
    purpose = f"{node.op.name}: a program for each row and column."
    name, traffic = f"{node.op.name.lower()}_{index}", _traffic(work, body.statements)
    return Emitted.of(name, purpose, body, Grid.ROW_COLUMNS, traffic, tile=work.columns)


def _traffic(work: RowWork, statements: Sequence[Statement]) -> Traffic:
    """Count loads and stores: in a loop over pages once a page, in a loop inside it more often.

    Pages outside of a span are few, and are not counted.
    """
    moved, page_bytes, head_bytes = {}, 0, 0
    for name, item in (("tl.load", work.source), ("tl.store", work.node)):
        size = MARK_BYTES if item.type.dtype is DType.BOOL else NUMBER_BYTES
        moved[name] = column_bytes(work.columns, size, is_written=item is work.node)
    for statement in (item for loop in statements for item in loop.body):
        calls = [(name, ast.unparse(call)) for name, call in called([statement])]
        inside = (name for name, text in calls if f"mask={OUTSIDE}" not in text)
        num_bytes = sum(moved.get(name, 0) for name in inside)
        turns = _turns(statement.syntax)
        if turns is None:  # one for each KV head
            head_bytes += num_bytes
        else:
            page_bytes += turns * num_bytes
    return Traffic(Stage.SCORING, page_bytes=page_bytes, head_bytes=head_bytes)


def _turns(syntax: ast.stmt) -> int | None:
    """Return how often a loop with literal bounds goes round; None for others, 1 if it is none."""
    match syntax:
        case ast.For(iter=ast.Call(args=[first, stop])):
            try:
                return int(ast.literal_eval(stop)) - int(ast.literal_eval(first))
            except ValueError:
                return None
    return 1


def _reduction(work: RowWork) -> Source:
    reduction, dtype = REDUCTIONS[type(work.op)], work.dtype
    empty = identity(reduction, work.node.type.dtype)
    final = "found"
    if isinstance(work.op, reduce.L2Norm):
        final = "tl.sqrt_rn(found)"
    elif isinstance(work.op, reduce.Mean):
        final = "tl.div_rn(found, tl.maximum(stop - first, 1).to(tl.float32))"
    squared = "value = value * value" if isinstance(work.op, reduce.L2Norm) else ""
    return lines(f"""
        {work.span()}
        found = tl.full((), {empty}, tl.{dtype})
        {work.tiles()}
            value = {work.load("page < stop", empty)}
            {squared}
            found = {COMBINED[reduction].format("found", f"tl.{reduction}(value, 0)")}
        found = tl.where(stop > first, {final}, 0)
        {work.store("found")}
    """)


def _arg_max(work: RowWork) -> Source:
    """Find the first page of the largest value; NaN is the smallest."""
    dtype = work.source.type.dtype.computed
    lowest = identity("max", dtype)
    value = work.load("page < stop", lowest, dtype=dtype)
    numbers = f"value = tl.where(value == value, value, {lowest})" if dtype.is_float else ""
    return lines(f"""
        {work.span()}
        largest = tl.full((), {lowest}, tl.{dtype})
        found = tl.zeros((), tl.int32) + first
        {work.tiles()}
            value = {value}
            {numbers}
            here = tl.max(value, 0)
            place = tl.min(tl.where(value == here, page, 2147483647), 0)
            found = tl.where(here > largest, place, found)
            largest = tl.maximum(largest, here)
        {work.store("tl.where(stop > first, found, 0)")}
    """)


def _softmax(work: RowWork) -> Source:
    scale = "" if work.op.scale == 1.0 else f" * {number(work.op.scale)}"
    inside = work.load("page < stop", "0")
    value = f'tl.where(page < stop, {inside}{scale}, float("-inf"))'
    return lines(f"""
        {work.span()}
        largest = tl.full((), float("-inf"), tl.float32)
        {work.tiles()}
            value = {value}
            largest = tl.maximum(largest, tl.max(value, 0))
        largest = tl.where(largest == float("-inf"), 0.0, largest)
        total = tl.zeros((), tl.float32)
        {work.tiles()}
            value = {value}
            total += tl.sum(tl.exp(value - largest), 0)
        total = tl.where(total == 0.0, 1.0, total)
        {work.tiles("0", "num_pages")}
            value = {work.load("page < num_pages", "0")}
            share = tl.div_rn(tl.exp(value{scale} - largest), total)
            value = tl.where((page >= first) & (page < stop), share, value)
            {work.store("value", "page < num_pages")}
    """)


def _normalize(work: RowWork) -> Source:
    return lines(f"""
        {work.span()}
        total = tl.zeros((), tl.float32)
        {work.tiles()}
            value = {work.load("page < stop", "0")}
            total += tl.sum(value * value, 0)
        norm = tl.maximum(tl.sqrt_rn(total), 1e-12)
        {work.tiles("0", "num_pages")}
            value = {work.load("page < num_pages", "0")}
            inside = (page >= first) & (page < stop)
            value = tl.where(inside, tl.div_rn(value, norm), value)
            {work.store("value", "page < num_pages")}
    """)


def _across_heads(work: RowWork) -> Source:
    """Reduce over the heads of a request: each computes the same value, in the same order."""
    reduction = "sum" if work.op.kind is page_axis.Kind.MEAN else str(work.op.kind)
    memory, is_per_row = work.operands[0], work.source.type.format is FORMAT.BATCHED
    row_start(work.body, memory)
    place, mask, shape = f"{memory} + (request * num_kv_heads + other) * {memory}_row", "", "()"
    if not is_per_row:
        place += f" + page * {work.columns}" if work.columns > 1 else " + page"
        mask, shape = ", mask=page < num_pages, other=0", f"({work.tile},)"
    found = lines(f"""
        found = tl.full({shape}, {identity(reduction, DType.FLOAT32)}, tl.float32)
        for other in range(0, num_kv_heads):
            value = tl.load({place} + column{mask}).to(tl.float32)
            found = {COMBINED[reduction].format("found", "value")}
    """)
    if work.op.kind is page_axis.Kind.MEAN:
        found = joined([found, "found = found / num_kv_heads"])
    if is_per_row:
        return joined([found, work.store("found")])
    return work.each_page(found, "found")


def _selected_tokens(work: RowWork) -> Source:
    """Count tokens of pages that are chosen or reserved; only the last page may be short."""
    work.body.need_all("first_reserved", "last_reserved")
    size = work.page_size
    return lines(f"""
        found = tl.zeros((), tl.int32)
        {work.tiles("0", "num_pages")}
            chosen = {work.load("page < num_pages", "0")}
            read = (chosen != 0) | (page < first_reserved) | (page >= num_pages - last_reserved)
            tokens = tl.minimum(num_tokens - page * {size}, {size})
            found += tl.sum(tl.where(read & (page < num_pages), tokens, 0), 0)
        {work.store("found")}
    """)


RowEmitter = Callable[[RowWork], Source]

ROW_OPS: dict[type[Op], RowEmitter] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    reduce.ArgMax: _arg_max,
    page_axis.Softmax: _softmax,
    page_axis.Normalize: _normalize,
    page_axis.AcrossHeads: _across_heads,
    selection.SelectedTokens: _selected_tokens,
    **NEIGHBOURS,
}
"""Statements of ops that need more than the page at hand."""
