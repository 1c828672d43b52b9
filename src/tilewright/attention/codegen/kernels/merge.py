"""What becomes of the parts of a row's attention: stored, joined through memory, divided."""

from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import merge_traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Source, lines
from tilewright.attention.graph import Geometry

LOWEST = "-3.0e38"
"""The largest logit of no tokens: finite, so that differences to it are numbers."""

_PARTS = {
    "part_largest": "float32 [rows, parts, query heads]",
    "part_total": "float32 [rows, parts, query heads]",
    "part_weighted": "float32 [rows, parts, query heads, value channels]",
}


def head_masks(sizes: Geometry) -> tuple[str, str]:
    """Return the conditions of query heads that are there, and of their channels."""
    heads = f"query_head < {sizes.query_heads}"
    return heads, f"({heads}) & (value_channel < {sizes.value_dim})"


def output_places(sizes: Geometry, body: Body, output: str, sums: str) -> tuple[str, str]:
    """Take an output and its log-sum-exp; return where those of the row lie."""
    body.need(output, f"float32 [rows, {sizes.query_heads}, {sizes.value_dim}]")
    body.need(sums, f"float32 [rows, {sizes.query_heads}]")
    places = f"{row_start(body, output)} + query_head * {sizes.value_dim} + value_channel"
    return places, f"{row_start(body, sums)} + query_head"


def _part_places(form: RowForm, body: Body, part: str) -> list[str]:
    """Return where the three values of a part lie."""
    names = [body.need(f"{name}{form.suffix}", holds) for name, holds in _PARTS.items()]
    largest, total, weighted = (f"{row_start(body, name, part)} + query_head" for name in names)
    return [largest, total, f"{weighted} * {form.sizes.value_dim} + value_channel"]


def part_code(form: RowForm, body: Body, part: str) -> Source:
    """Store ``largest``, ``total`` and ``weighted``."""
    largest, total, weighted = _part_places(form, body, part)
    heads, channels = head_masks(form.sizes)
    return lines(f"""
        tl.store({largest}, largest, mask={heads})
        tl.store({total}, total, mask={heads})
        tl.store({weighted}, weighted, mask={channels})
    """)


def finish_code(form: RowForm, body: Body) -> Source:
    """Store the attention of a row from ``largest``, ``total`` and ``weighted``."""
    names = f"output{form.suffix}", f"log_sum_exp{form.suffix}"
    places, sum_places = output_places(form.sizes, body, *names)
    heads, channels = head_masks(form.sizes)
    return lines(f"""
        divisor = tl.where(total == 0.0, 1.0, total)
        tl.store({places}, tl.div_rn(weighted, divisor), mask={channels})
        tl.store({sum_places}, largest + tl.log(total), mask={heads})
    """)


def emit_merge_parts(form: RowForm) -> Emitted:
    """Emit the log-sum-exp merge of the parts of each row, in order, through memory."""
    body = Body()
    largest, total, weighted = _part_places(form, body, "part")
    count = str(form.members)
    if form.target is None:
        length = body.need(f"list_length{form.suffix}", "int32 [rows]")
        pages = form.tiling.part_pages
        count = f"(tl.load({row_start(body, length)}) + {pages - 1}) // {pages}"
    rows, columns = padded(form.sizes.query_heads), padded(form.sizes.value_dim)
    heads, channels = head_masks(form.sizes)
    body.add(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {rows})[:, None]
        value_channel = tl.arange(0, {columns})[None, :]
        largest = tl.full(({rows}, 1), {LOWEST}, tl.float32)
        total = tl.zeros(({rows}, 1), tl.float32)
        weighted = tl.zeros(({rows}, {columns}), tl.float32)
        num_parts = {count}
        for part in range(0, num_parts):
            other = tl.load({largest}, mask={heads}, other=0)
            new_largest = tl.maximum(largest, other)
            earlier, later = tl.exp(largest - new_largest), tl.exp(other - new_largest)
            other = tl.load({total}, mask={heads}, other=0)
            total = total * earlier + other * later
            places = {weighted}
            weighted = weighted * earlier + tl.load(places, mask={channels}, other=0) * later
            largest = new_largest
        {finish_code(form, body)}
    """)
    purpose = "The attention of each row from its parts: a program for each row."
    traffic = merge_traffic(form.sizes, form.members)
    return Emitted.of(f"merge_parts{form.suffix}", purpose, body, Grid.ROWS, traffic)
