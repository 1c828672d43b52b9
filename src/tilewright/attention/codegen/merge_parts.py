"""What becomes of the parts of a row's attention: stored, joined through memory, divided."""

from tilewright.attention.codegen.body import Body, padded
from tilewright.attention.codegen.kernel_file import Grid, Kernel, Scratch, ScratchAxis, Stage
from tilewright.attention.codegen.loop_text import indented
from tilewright.attention.codegen.row_text import RowForm, row_start
from tilewright.attention.codegen.text import kernel_text
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.traffic import merge_traffic
from tilewright.attention.graph import DType, Geometry

__all__ = ("LOWEST", "emit_merge_parts", "finish_lines", "part_lines", "part_scratch")

LOWEST = "-3.0e38"
"""The largest logit of no tokens: finite, so that differences to it are numbers."""

_PARTS = {
    "part_largest": "float32 [rows, parts, query heads]",
    "part_total": "float32 [rows, parts, query heads]",
    "part_weighted": "float32 [rows, parts, query heads, value channels]",
}


def part_scratch(sizes: Geometry) -> tuple[Scratch, ...]:
    """What a part leaves for the merge."""
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch("part_largest", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_total", ScratchAxis.PARTS, (heads,), DType.FLOAT32),
        Scratch("part_weighted", ScratchAxis.PARTS, (heads, width), DType.FLOAT32),
    )


def _starts(body: Body, part: str) -> dict[str, str]:
    for name, holds in _PARTS.items():
        body.need(name, holds)
    return {name: row_start(body, name, part) for name in _PARTS}


def part_lines(sizes: Geometry, body: Body, part: str) -> list[str]:
    """Leave ``largest``, ``total`` and ``weighted`` in memory."""
    heads, width = sizes.query_heads, sizes.value_dim
    inside = f"(query_head < {heads}) & (value_channel < {width})"
    starts = _starts(body, part)
    places = f"{starts['part_weighted']} + query_head * {width} + value_channel"
    return [
        f"tl.store({starts['part_largest']} + query_head, largest, mask=query_head < {heads})",
        f"tl.store({starts['part_total']} + query_head, total, mask=query_head < {heads})",
        f"tl.store({places}, weighted, mask={inside})",
    ]


def finish_lines(sizes: Geometry, body: Body) -> list[str]:
    """The attention of a row from ``largest``, ``total`` and ``weighted``."""
    heads, width = sizes.query_heads, sizes.value_dim
    inside = f"(query_head < {heads}) & (value_channel < {width})"
    body.need("output", f"float32 [rows, {heads}, {width}]")
    body.need("log_sum_exp", f"float32 [rows, {heads}]")
    places = f"{row_start(body, 'output')} + query_head * {width} + value_channel"
    sums = f"{row_start(body, 'log_sum_exp')} + query_head"
    return [
        "divisor = tl.where(total == 0.0, 1.0, total)",
        f"tl.store({places}, tl.div_rn(weighted, divisor), mask={inside})",
        f"tl.store({sums}, largest + tl.log(total), mask=query_head < {heads})",
    ]


def emit_merge_parts(sizes: Geometry, tiling: Tiling, form: RowForm) -> tuple[Kernel, str]:
    """Log-sum-exp merge of the parts of each row, in order, through memory."""
    body = Body(page_tokens=None)
    starts = _starts(body, "part")
    if form.target is None:
        body.need("list_length", "int32 [rows]")
        length = f"tl.load({row_start(body, 'list_length')})"
        number = f"({length} + {tiling.part_pages - 1}) // {tiling.part_pages}"
    else:
        number = str(form.members)
    body.lines += _merge_lines(sizes, starts, number)
    body.lines += finish_lines(sizes, body)
    purpose = "The attention of each row from its parts: a program for each row."
    kernel = Kernel(
        "merge_parts",
        Grid.ROWS,
        tuple(body.arguments),
        stages=(Stage.MERGE,),
        traffic=(merge_traffic(sizes, form.members),),
    )
    return kernel, kernel_text(kernel.name, purpose, body.arguments, body.lines)


def _merge_lines(sizes: Geometry, starts: dict[str, str], number: str) -> list[str]:
    heads, width = sizes.query_heads, sizes.value_dim
    inside = f"(query_head < {heads}) & (value_channel < {width})"
    largest, total, weighted = starts.values()
    loop = [
        f"other = tl.load({largest} + query_head, mask=query_head < {heads}, other=0)",
        "new_largest = tl.maximum(largest, other)",
        "earlier, later = tl.exp(largest - new_largest), tl.exp(other - new_largest)",
        f"other = tl.load({total} + query_head, mask=query_head < {heads}, other=0)",
        "total = total * earlier + other * later",
        f"places = {weighted} + query_head * {width} + value_channel",
        f"weighted = weighted * earlier + tl.load(places, mask={inside}, other=0) * later",
        "largest = new_largest",
    ]
    return [
        "row = tl.program_id(0).to(tl.int64)",
        f"query_head = tl.arange(0, {padded(heads)})[:, None]",
        f"value_channel = tl.arange(0, {padded(width)})[None, :]",
        f"largest = tl.full(({padded(heads)}, 1), {LOWEST}, tl.float32)",
        f"total = tl.zeros(({padded(heads)}, 1), tl.float32)",
        f"weighted = tl.zeros(({padded(heads)}, {padded(width)}), tl.float32)",
        f"num_parts = {number}",
        "for part in range(0, num_parts):",
        *indented(loop),
    ]
