"""What becomes of the parts of a row's attention: stored, joined through memory, divided."""

from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import merge_traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid, Scratch, ScratchAxis
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Statement, code
from tilewright.attention.graph import DType, Geometry

LOWEST = "-3.0e38"
"""The largest logit of no tokens: finite, so that differences to it are numbers."""

_PARTS = {
    "part_largest": "float32 [rows, parts, query heads]",
    "part_total": "float32 [rows, parts, query heads]",
    "part_weighted": "float32 [rows, parts, query heads, value channels]",
}


def part_scratch(sizes: Geometry) -> tuple[Scratch, ...]:
    """Return what a part leaves for the merge."""
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch("part_largest", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_total", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_weighted", ScratchAxis.PARTS, (heads, width), DType.FLOAT32),
    )


def _starts(form: RowForm, body: Body, part: str) -> list[str]:
    """Return where the three values of a part begin."""
    names = [body.need(f"{name}{form.suffix}", holds) for name, holds in _PARTS.items()]
    return [row_start(body, name, part) for name in names]


def head_mask(sizes: Geometry) -> str:
    """Return the condition of query heads and channels that are there."""
    return f"(query_head < {sizes.query_heads}) & (value_channel < {sizes.value_dim})"


def part_code(form: RowForm, body: Body, part: str) -> list[Statement]:
    """Store ``largest``, ``total`` and ``weighted``."""
    sizes = form.sizes
    heads, width = sizes.query_heads, sizes.value_dim
    largest, total, weighted = _starts(form, body, part)
    places = f"{weighted} + query_head * {width} + value_channel"
    return code(f"""
        tl.store({largest} + query_head, largest, mask=query_head < {heads})
        tl.store({total} + query_head, total, mask=query_head < {heads})
        tl.store({places}, weighted, mask={head_mask(sizes)})
    """)


def finish_code(form: RowForm, body: Body) -> list[Statement]:
    """Store the attention of a row from ``largest``, ``total`` and ``weighted``."""
    sizes = form.sizes
    heads, width = sizes.query_heads, sizes.value_dim
    output = body.need(f"output{form.suffix}", f"float32 [rows, {heads}, {width}]")
    sums = body.need(f"log_sum_exp{form.suffix}", f"float32 [rows, {heads}]")
    places = f"{row_start(body, output)} + query_head * {width} + value_channel"
    sum_places = f"{row_start(body, sums)} + query_head"
    return code(f"""
        divisor = tl.where(total == 0.0, 1.0, total)
        tl.store({places}, tl.div_rn(weighted, divisor), mask={head_mask(sizes)})
        tl.store({sum_places}, largest + tl.log(total), mask=query_head < {heads})
    """)


def emit_merge_parts(form: RowForm) -> Emitted:
    """Emit the log-sum-exp merge of the parts of each row, in order, through memory."""
    body = Body()
    starts = _starts(form, body, "part")
    number = str(form.members)
    if form.target is None:
        length = body.need(f"list_length{form.suffix}", "int32 [rows]")
        pages = form.tiling.part_pages
        number = f"(tl.load({row_start(body, length)}) + {pages - 1}) // {pages}"
    body.statements = _merge_code(form.sizes, starts, number) + finish_code(form, body)
    purpose = "The attention of each row from its parts: a program for each row."
    traffic = merge_traffic(form.sizes, form.members)
    return Emitted.of(f"merge_parts{form.suffix}", purpose, body, Grid.ROWS, traffic)


def _merge_code(sizes: Geometry, starts: list[str], number: str) -> list[Statement]:
    heads, width = sizes.query_heads, sizes.value_dim
    largest, total, weighted = starts
    loaded = f"tl.load(places, mask={head_mask(sizes)}, other=0)"
    return code(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {padded(heads)})[:, None]
        value_channel = tl.arange(0, {padded(width)})[None, :]
        largest = tl.full(({padded(heads)}, 1), {LOWEST}, tl.float32)
        total = tl.zeros(({padded(heads)}, 1), tl.float32)
        weighted = tl.zeros(({padded(heads)}, {padded(width)}), tl.float32)
        num_parts = {number}
        for part in range(0, num_parts):
            other = tl.load({largest} + query_head, mask=query_head < {heads}, other=0)
            new_largest = tl.maximum(largest, other)
            earlier, later = tl.exp(largest - new_largest), tl.exp(other - new_largest)
            other = tl.load({total} + query_head, mask=query_head < {heads}, other=0)
            total = total * earlier + other * later
            places = {weighted} + query_head * {width} + value_channel
            weighted = weighted * earlier + {loaded} * later
            largest = new_largest
    """)
