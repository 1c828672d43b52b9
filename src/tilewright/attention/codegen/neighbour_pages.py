"""Lines of kernels whose pages look at other pages of their row."""

from collections.abc import Callable
from typing import Any

from tilewright.attention.codegen.elementwise import number
from tilewright.attention.codegen.row_text import row_start
from tilewright.attention.codegen.row_work import RowWork, identity
from tilewright.attention.graph import FORMAT, DType, Op
from tilewright.attention.ops import choose, page_axis

__all__ = ("NEIGHBOURS",)

_COMBINED = {
    "sum": "found + value",
    "max": "tl.maximum(found, value)",
    "min": "tl.minimum(found, value)",
}


def _shift_pages(work: RowWork) -> list[str]:
    op: Any = work.node.op
    fill = number(op.fill) if work.dtype.is_float else str(int(op.fill))
    if work.node.type.dtype is DType.BOOL:
        fill = str(int(bool(op.fill)))
    return [
        *work.tiles("0", "num_pages"),
        f"    other = page + {op.offset}",
        "    inside = (page < num_pages) & (other >= 0) & (other < num_pages)",
        f"    value = {work.load('inside', '0', page='other')}",
        f"    value = tl.where(inside, value, {fill})",
        f"    {work.store('value', 'page < num_pages')}",
    ]


def _pool_pages(work: RowWork) -> list[str]:
    """The window is shorter at the ends of the span."""
    op: Any = work.node.op
    reduction = "sum" if op.kind is page_axis.Kind.MEAN else str(op.kind)
    empty = identity(reduction, DType.FLOAT32)
    lines = [
        f"found = tl.full(({work.tile},), {empty}, tl.float32)",
        f"for offset in range(-{op.before}, {op.after + 1}):",
        "    other = page + offset",
        "    inside = (page < stop) & (other >= first) & (other < stop)",
        f"    value = tl.where(inside, {work.load('inside', '0', page='other')}, {empty})",
        f"    found = {_COMBINED[reduction]}",
    ]
    if op.kind is page_axis.Kind.MEAN:
        last = f"tl.minimum(page + {op.after}, stop - 1)"
        count = f"{last} - tl.maximum(page - {op.before}, first) + 1"
        lines.append(f"found = tl.div_rn(found, tl.maximum({count}, 1).to(tl.float32))")
    lines.append(work.store("found", "page < stop"))
    return [
        *work.span(),
        *work.tiles(),
        *(f"    {line}" for line in lines),
        *work.pass_through(),
    ]


def _conv1d(work: RowWork) -> list[str]:
    """Zeros before the first page of the span."""
    op: Any = work.node.op
    taps = [[value for row in tap for value in row] for tap in op.weight]
    lines = [f"found = tl.zeros(({work.tile},), tl.float32)"]
    for back, tap in enumerate(taps):
        inside = f"(page < stop) & (page - {back} >= first)"
        lines += [
            *_weight_lines(tap),
            f"value = {work.load(inside, '0', page=f'page - {back}' if back else 'page')}",
            "found += value * weight",
        ]
    return [
        *work.span(),
        *work.tiles(),
        *(f"    {line}" for line in [*lines, work.store("found", "page < stop")]),
        *work.pass_through(),
    ]


def _weight_lines(tap: list[float]) -> list[str]:
    """The weight of the program's column."""
    lines = [f"weight = {number(tap[0])}"]
    if len(set(tap)) > 1:
        lines += [
            f"weight = tl.where(column == {column}, {number(value)}, weight)"
            for column, value in enumerate(tap[1:], 1)
        ]
    return lines


def _cum_sum(work: RowWork) -> list[str]:
    """Tile by tile with what came before; in reverse from the last page on."""
    op: Any = work.node.op
    head, page = work.tiles()
    inside = "page < stop"
    if op.reverse:
        page = f"    page = stop - 1 - (start - first) - tl.arange(0, {work.tile})"
        inside = "page >= first"
    return [
        *work.span(),
        f"before = tl.zeros((), tl.{work.dtype})",
        head,
        page,
        f"    value = {work.load(inside, '0')}",
        f"    {work.store('before + tl.cumsum(value, 0)', inside)}",
        "    before += tl.sum(value, 0)",
        *work.pass_through(),
    ]


def _gather(work: RowWork) -> list[str]:
    """Pages by their logical position; one outside gives 0."""
    index = row_start(work.body, work.operands[1])
    inside = "(other >= 0) & (other < num_pages)"
    if work.node.inputs[1].type.format is FORMAT.BATCHED:
        value = work.load("inside", "0", page="other")
        return [
            f"other = tl.load({index})",
            f"inside = {inside}",
            work.store_row(value),
        ]
    return [
        *work.tiles("0", "num_pages"),
        f"    other = tl.load({index} + page, mask=page < num_pages, other=-1)",
        f"    inside = {inside}",
        f"    {work.store(work.load('inside', '0', page='other'), 'page < num_pages')}",
    ]


NEIGHBOURS: dict[type[Op], Callable[[RowWork], list[str]]] = {
    page_axis.ShiftPages: _shift_pages,
    page_axis.PoolPages: _pool_pages,
    page_axis.Conv1d: _conv1d,
    page_axis.CumSum: _cum_sum,
    choose.Gather: _gather,
}
