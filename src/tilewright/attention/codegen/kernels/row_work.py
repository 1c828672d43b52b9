"""Statements of kernels over all pages of a row, and those of pages that look at other pages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.attention.codegen.expression.elementwise import identity, number
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import row_start, span_code
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import FORMAT, DType, Node, Op, Span
from tilewright.attention.ops import choose, page_axis

OUTSIDE = "outside"
"""The mask of loads and stores of pages that an op does not see."""


COMBINED = {"sum": "{0} + {1}", "max": "tl.maximum({0}, {1})", "min": "tl.minimum({0}, {1})"}
"""Two values as one, by the name of a reduction."""


@dataclass(frozen=True, slots=True)
class RowWork:
    """An op, the scratch memory of its operands and of its result, and the kernel's body.

    A program has one ``column`` of each page: one of its inner elements.
    """

    node: Node
    operands: tuple[str, ...]
    result: str
    tile: int
    page_size: int
    body: Body

    @property
    def op(self) -> Any:
        """The op, whose attributes depend on its class."""
        return self.node.op

    @property
    def source(self) -> Node:
        return self.node.inputs[0]

    @property
    def columns(self) -> int:
        return self.source.type.num_elements

    @property
    def dtype(self) -> DType:
        """What the op computes in: bools as whole numbers."""
        dtype = self.node.type.dtype
        return DType.INT32 if dtype is DType.BOOL else dtype.computed

    def span(self) -> Source:
        return span_code(getattr(self.op, "span", Span.ALL), self.body)

    def tiles(self, first: str = "first", stop: str = "stop") -> Source:
        """Begin a loop over tiles, whose pages have the numbers ``page``.

        The body follows indented once more than what this stands in.
        """
        return lines(f"""
            for start in range({first}, {stop}, {self.tile}):
                page = start + tl.arange(0, {self.tile})
        """)

    def place(self, memory: str, page: str = "page") -> str:
        if self.columns > 1:
            page = f"{page if page.isidentifier() else f'({page})'} * {self.columns}"
        return f"{row_start(self.body, memory)} + {page} + column"

    def load(self, mask: str, other: str, page: str = "page", dtype: DType | None = None) -> str:
        """Load the operand at pages where the mask holds, in the type that the op computes in."""
        place = self.place(self.operands[0], page)
        return f"tl.load({place}, mask={mask}, other={other}).to(tl.{dtype or self.dtype})"

    def store(self, value: str, mask: str = "") -> str:
        """Store the value of pages where the mask holds; without one, the value of the row."""
        place = f"{row_start(self.body, self.result)} + column"
        if mask:
            place, mask = self.place(self.result), f", mask={mask}"
        value = f"({value}).to(tl.int8)" if self.node.type.dtype is DType.BOOL else value
        return f"tl.store({place}, {value}{mask})"

    def pass_through(self) -> Source:
        """Copy pages outside the span, which keep their value."""
        if getattr(self.op, "span", Span.ALL) is Span.ALL:
            return Source()
        return lines(f"""
            {self.tiles("0", "num_pages")}
                {OUTSIDE} = (page < num_pages) & ((page < first) | (page >= stop))
                {self.store(self.load(OUTSIDE, "0"), OUTSIDE)}
        """)

    def each_page(self, source: str, value: str = "value") -> Source:
        """Loop over all pages of the row, and store a value of each."""
        return lines(f"""
            {self.tiles("0", "num_pages")}
                {lines(source)}
                {self.store(value, "page < num_pages")}
        """)


def _shift_pages(work: RowWork) -> Source:
    fill = number(work.op.fill) if work.dtype.is_float else str(int(work.op.fill))
    if work.node.type.dtype is DType.BOOL:
        fill = str(int(bool(work.op.fill)))
    return work.each_page(f"""
        other = page + {work.op.offset}
        inside = (page < num_pages) & (other >= 0) & (other < num_pages)
        value = {work.load("inside", "0", "other")}
        value = tl.where(inside, value, {fill})
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
    terms: list[str] = []
    for back, tap in enumerate(work.op.weight):
        weights = [value for row in tap for value in row]  # of the program's column
        inside = f"(page < stop) & (page - {back} >= first)"
        value = work.load(inside, "0", f"page - {back}" if back else "page")
        terms.append(f"weight = {number(weights[0])}")
        for column, weight in enumerate(weights):
            if column and len(set(weights)) > 1:
                terms.append(f"weight = tl.where(column == {column}, {number(weight)}, weight)")
        terms += [f"value = {value}", "found += value * weight"]
    return lines(f"""
        {work.span()}
        {work.tiles()}
            found = tl.zeros(({work.tile},), tl.float32)
            {joined(terms)}
            {work.store("found", "page < stop")}
        {work.pass_through()}
    """)


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
    source = f"other = tl.load({index} + page, mask=page < num_pages, other=-1)"
    return work.each_page(f"{source}; inside = {inside}", work.load("inside", "0", "other"))


NEIGHBOURS: dict[type[Op], Callable[[RowWork], Source]] = {
    page_axis.ShiftPages: _shift_pages,
    page_axis.PoolPages: _pool_pages,
    page_axis.Conv1d: _conv1d,
    page_axis.CumSum: _cum_sum,
    choose.Gather: _gather,
}
