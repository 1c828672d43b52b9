"""Statements of kernels whose pages look at other pages of their row."""

from collections.abc import Callable
from typing import Any

from tilewright.attention.codegen.expression.elementwise import number
from tilewright.attention.codegen.kernels.row_work import COMBINED, RowWork, identity
from tilewright.attention.codegen.source.row import row_start
from tilewright.attention.codegen.source.tree import Statement, code
from tilewright.attention.graph import FORMAT, DType, Op
from tilewright.attention.ops import choose, page_axis


def _shift_pages(work: RowWork) -> list[Statement]:
    op: Any = work.node.op
    fill = number(op.fill) if work.dtype.is_float else str(int(op.fill))
    if work.node.type.dtype is DType.BOOL:
        fill = str(int(bool(op.fill)))
    return code(f"""
        {work.tiles("0", "num_pages")}
            {work.page}
            other = page + {op.offset}
            inside = (page < num_pages) & (other >= 0) & (other < num_pages)
            value = {work.load("inside", "0", page="other")}
            value = tl.where(inside, value, {fill})
            {work.store("value", "page < num_pages")}
    """)


def _pool_pages(work: RowWork) -> list[Statement]:
    """Reduce a window of pages, which is shorter at the ends of the span."""
    op: Any = work.node.op
    reduction = "sum" if op.kind is page_axis.Kind.MEAN else str(op.kind)
    empty = identity(reduction, DType.FLOAT32)
    mean = ""
    if op.kind is page_axis.Kind.MEAN:
        last = f"tl.minimum(page + {op.after}, stop - 1)"
        count = f"{last} - tl.maximum(page - {op.before}, first) + 1"
        mean = f"found = tl.div_rn(found, tl.maximum({count}, 1).to(tl.float32))"
    found = COMBINED[reduction].format("found", "value")
    turn = f"""
        {work.tiles()}
            {work.page}
            found = tl.full(({work.tile},), {empty}, tl.float32)
            for offset in range(-{op.before}, {op.after + 1}):
                other = page + offset
                inside = (page < stop) & (other >= first) & (other < stop)
                value = tl.where(inside, {work.load("inside", "0", page="other")}, {empty})
                found = {found}
            {mean}
            {work.store("found", "page < stop")}
        ...
    """
    return [*work.span(), *code(turn, work.pass_through())]


def _conv1d(work: RowWork) -> list[Statement]:
    """Convolve along pages, with zeros before the first page of the span."""
    op: Any = work.node.op
    taps = [[value for row in tap for value in row] for tap in op.weight]
    terms: list[Statement] = []
    for back, tap in enumerate(taps):
        inside = f"(page < stop) & (page - {back} >= first)"
        terms += _weight_code(tap)
        terms += code(f"value = {work.load(inside, '0', back=back)}; found += value * weight")
    span = work.span()
    return code(
        f"""
        ...
        {work.tiles()}
            {work.page}
            found = tl.zeros(({work.tile},), tl.float32)
            ...
            {work.store("found", "page < stop")}
        ...
        """,
        span,
        terms,
        work.pass_through(),
    )


def _weight_code(tap: list[float]) -> list[Statement]:
    """Set the weight of the program's column."""
    lines = code(f"weight = {number(tap[0])}")
    if len(set(tap)) > 1:
        for column, value in enumerate(tap[1:], 1):
            lines += code(f"weight = tl.where(column == {column}, {number(value)}, weight)")
    return lines


def _cum_sum(work: RowWork) -> list[Statement]:
    """Add up tile by tile with what came before; in reverse from the last page on."""
    op: Any = work.node.op
    page, inside = f"start + tl.arange(0, {work.tile})", "page < stop"
    if op.reverse:
        page = f"stop - 1 - (start - first) - tl.arange(0, {work.tile})"
        inside = "page >= first"
    span = work.span()
    return code(
        f"""
        ...
        before = tl.zeros((), tl.{work.dtype})
        {work.tiles()}
            page = {page}
            value = {work.load(inside, "0")}
            {work.store("before + tl.cumsum(value, 0)", inside)}
            before += tl.sum(value, 0)
        ...
        """,
        span,
        work.pass_through(),
    )


def _gather(work: RowWork) -> list[Statement]:
    """Gather pages by their logical position; one outside gives 0."""
    index = row_start(work.body, work.operands[1])
    inside = "(other >= 0) & (other < num_pages)"
    if work.node.inputs[1].type.format is FORMAT.BATCHED:
        return code(f"""
            other = tl.load({index})
            inside = {inside}
            {work.store_row(work.load("inside", "0", page="other"))}
        """)
    return code(f"""
        {work.tiles("0", "num_pages")}
            {work.page}
            other = tl.load({index} + page, mask=page < num_pages, other=-1)
            inside = {inside}
            {work.store(work.load("inside", "0", page="other"), "page < num_pages")}
    """)


NEIGHBOURS: dict[type[Op], Callable[[RowWork], list[Statement]]] = {
    page_axis.ShiftPages: _shift_pages,
    page_axis.PoolPages: _pool_pages,
    page_axis.Conv1d: _conv1d,
    page_axis.CumSum: _cum_sum,
    choose.Gather: _gather,
}
