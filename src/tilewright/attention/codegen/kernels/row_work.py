"""What kernels over all pages of a row share: where values lie, and which pages count."""

from dataclasses import dataclass
from typing import Any

from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import row_start, span_code
from tilewright.attention.codegen.source.tree import Source, lines
from tilewright.attention.graph import DType, Node, Span

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
