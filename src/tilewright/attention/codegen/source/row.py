"""What kernels of a step begin with: their row, its length, and where its arrays begin."""

from dataclasses import dataclass, field

from tilewright.attention.codegen.plan.target import Cut, Deal, Merge, Target, Tiling
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.tree import Source, lines
from tilewright.attention.graph import Geometry, Span


def row_preamble(body: Body, page_size: int) -> Source:
    """Set the row and its length."""
    body.need_all("num_tokens_ptr", "num_kv_heads")
    return lines(f"""
        row = tl.program_id(0).to(tl.int64)
        request = row // num_kv_heads
        head = row % num_kv_heads
        num_tokens = tl.load(num_tokens_ptr + request)
        num_pages = (num_tokens + {page_size - 1}) // {page_size}
    """)


def row_start(body: Body, array: str, part: str | None = None) -> str:
    """Return where a row of an array begins, or a part of it: they may lie apart."""
    body.need(f"{array}_row", f"elements from a row of {array} to the next")
    if part is None:
        return f"{array} + row * {array}_row"
    body.need(f"{array}_member", "and from a part of it to the next")
    return f"{array} + row * {array}_row + {part} * {array}_member"


def span_code(span: Span, body: Body) -> Source:
    """Set the pages that an op sees, ``first`` to ``stop``."""
    if span is Span.ALL:
        return lines("first = 0; stop = num_pages")
    body.need_all("first_reserved", "last_reserved")
    return lines("""
        stop = tl.maximum(num_pages - last_reserved, 0)
        first = tl.minimum(first_reserved, stop)
    """)


def table_start(body: Body) -> str:
    """Return where the block numbers of a row begin."""
    body.need_all("block_table", "table_request", "table_head")
    return "block_table + request * table_request + head * table_head"


@dataclass(frozen=True, slots=True)
class RowForm:
    """Which pages a program looks at. Without a target a program has a tile, or a part of a list.

    Pages of a member are numbered from 0 by *own*; *page* is the logical number in the row.
    """

    sizes: Geometry
    tiling: Tiling
    target: Target | None = None
    cut: Cut = field(default_factory=Cut)
    kept: int = 0  # candidates of a segment, where pages are selected in two levels
    suffix: str = ""  # of the arrays that a branch among several has of its own

    @property
    def members(self) -> int:
        return 1 if self.target is None else self.target.members

    @property
    def deal(self) -> Deal:
        return Deal.WHOLE if self.target is None else self.target.deal

    @property
    def merge(self) -> Merge:
        """Through what members join their parts."""
        has_queues = self.target is not None and Merge.IPCQ in self.target.merges
        return Merge.IPCQ if has_queues and self.members > 1 else Merge.MEMORY

    @property
    def has_parts(self) -> bool:
        """Whether parts of a row meet in memory."""
        return self.target is None or (self.members > 1 and self.merge is Merge.MEMORY)

    @property
    def has_dots(self) -> bool:
        """Whether products with queries go to the matrix unit."""
        return self.target is not None and self.cut.has_dots

    @property
    def num_own(self) -> str:
        """The name of the number of pages that the member has."""
        return "num_pages" if self.deal is Deal.WHOLE else "num_own"

    @property
    def part(self) -> str | None:
        """The name of the member, if there are several."""
        return None if self.deal is Deal.WHOLE else "member"

    @property
    def program(self) -> str:
        """What there is a program for."""
        return "row" if self.part is None else "row and member"

    def preamble(self, body: Body) -> Source:
        """Set the row, its length, and the share of it that the program has."""
        start = row_preamble(body, self.sizes.page_size)
        if self.deal is Deal.WHOLE:
            return start
        own = f"num_own = (num_pages - member + {self.members - 1}) // {self.members}"
        if self.deal is Deal.CONTIGUOUS:
            body.need("member_pages")
            own = "num_own = tl.minimum(tl.maximum(num_pages - first_own, 0), member_pages)"
            own = f"first_own = member * member_pages; {own}"
        return lines(f"""
            {start}
            member = tl.program_id(1)
            {own}
        """)

    def body(self) -> Body:
        """Begin the body of a stage: what its row is comes first among its arguments."""
        body = Body()
        self.preamble(body)
        return body

    def page_of(self, own: str) -> str:
        """Return the logical number of a member's page."""
        dealt = f"{own} * {self.members} + member"
        return {Deal.DEALT: dealt, Deal.CONTIGUOUS: f"first_own + {own}"}.get(self.deal, own)

    @property
    def page_steps(self) -> tuple[str, str]:
        """The same as two numbers: what a page is multiplied by, and what is added."""
        shifts = {Deal.WHOLE: "0", Deal.DEALT: "member", Deal.CONTIGUOUS: "first_own"}
        return str(self.members) if self.deal is Deal.DEALT else "1", shifts[self.deal]

    def table(self, body: Body) -> str:
        """Return where the block numbers of the member's pages begin."""
        start = table_start(body)
        if self.part is None:
            return start
        body.need("table_member")
        return f"{start} + member * table_member"
