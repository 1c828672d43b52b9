"""Statements of kernels whose pages look at other pages of their row."""

from collections.abc import Callable

from tilewright.attention.codegen.expression.elementwise import identity, number
from tilewright.attention.codegen.kernels.row_work import COMBINED, RowWork
from tilewright.attention.codegen.source.row import row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import FORMAT, DType, Op
from tilewright.attention.ops import choose, page_axis


def _shift_pages(work: RowWork) -> Source:
    fill = number(work.op.fill) if work.dtype.is_float else str(int(work.op.fill))
    if work.node.type.dtype is DType.BOOL:
        fill = str(int(bool(work.op.fill)))
    return lines(f"""
        {work.tiles("0", "num_pages")}
            other = page + {work.op.offset}
            inside = (page < num_pages) & (other >= 0) & (other < num_pages)
            value = {work.load("inside", "0", "other")}
            value = tl.where(inside, value, {fill})
            {work.store("value", "page < num_pages")}
    """)


def _pool_pages(work: RowWork) -> Source:
    """Reduce a window of pages, which is shorter at the ends of the span."""
    reduction = "sum" if work.op.kind is page_axis.Kind.MEAN else str(work.op.kind)
    empty = identity(reduction, DType.FLOAT32)
    mean = ""
    if work.op.kind is page_axis.Kind.MEAN:
        last = f"tl.minimum(page + {work.op.after}, stop - 1)"
        count = f"{last} - tl.maximum(page - {work.op.before}, first) + 1"
        mean = f"found = tl.div_rn(found, tl.maximum({count}, 1).to(tl.float32))"
    found = COMBINED[reduction].format("found", "value")
    turn = lines(f"""
        {work.tiles()}
            found = tl.full(({work.tile},), {empty}, tl.float32)
            for offset in range(-{work.op.before}, {work.op.after + 1}):
                other = page + offset
                inside = (page < stop) & (other >= first) & (other < stop)
                value = tl.where(inside, {work.load("inside", "0", "other")}, {empty})
                found = {found}
            {mean}
            {work.store("found", "page < stop")}
        {work.pass_through()}
    """)
    return joined([work.span(), turn])


def _conv1d(work: RowWork) -> Source:
    """Convolve along pages, with zeros before the first page of the span."""
    taps = [[value for row in tap for value in row] for tap in work.op.weight]
    terms = Source()
    for back, tap in enumerate(taps):
        inside = f"(page < stop) & (page - {back} >= first)"
        value = work.load(inside, "0", f"page - {back}" if back else "page")
        terms = lines(f"""
            {terms}
            {_weight_code(tap)}
            value = {value}
            found += value * weight
        """)
    return lines(f"""
        {work.span()}
        {work.tiles()}
            found = tl.zeros(({work.tile},), tl.float32)
            {terms}
            {work.store("found", "page < stop")}
        {work.pass_through()}
    """)


def _weight_code(tap: list[float]) -> Source:
    """Set the weight of the program's column."""
    weight = number(tap[0])
    others = enumerate(tap[1:], 1) if len(set(tap)) > 1 else ()
    steps = [
        f"weight = tl.where(column == {column}, {number(value)}, weight)"
        for column, value in others
    ]
    return joined([f"weight = {weight}", *steps])


def _cum_sum(work: RowWork) -> Source:
    """Add up tile by tile with what came before; in reverse from the last page on."""
    page, inside = f"start + tl.arange(0, {work.tile})", "page < stop"
    if work.op.reverse:
        page = f"stop - 1 - (start - first) - tl.arange(0, {work.tile})"
        inside = "page >= first"
    return lines(f"""
        {work.span()}
        before = tl.zeros((), tl.{work.dtype})
        for start in range(first, stop, {work.tile}):
            page = {page}
            value = {work.load(inside, "0")}
            {work.store("before + tl.cumsum(value, 0)", inside)}
            before += tl.sum(value, 0)
        {work.pass_through()}
    """)


def _gather(work: RowWork) -> Source:
    """Gather pages by their logical position; one outside gives 0."""
    index = row_start(work.body, work.operands[1])
    inside = "(other >= 0) & (other < num_pages)"
    if work.node.inputs[1].type.format is FORMAT.BATCHED:
        return lines(f"""
            other = tl.load({index})
            inside = {inside}
            {work.store(work.load("inside", "0", "other"))}
        """)
    return lines(f"""
        {work.tiles("0", "num_pages")}
            other = tl.load({index} + page, mask=page < num_pages, other=-1)
            inside = {inside}
            {work.store(work.load("inside", "0", "other"), "page < num_pages")}
    """)


NEIGHBOURS: dict[type[Op], Callable[[RowWork], Source]] = {
    page_axis.ShiftPages: _shift_pages,
    page_axis.PoolPages: _pool_pages,
    page_axis.Conv1d: _conv1d,
    page_axis.CumSum: _cum_sum,
    choose.Gather: _gather,
}
