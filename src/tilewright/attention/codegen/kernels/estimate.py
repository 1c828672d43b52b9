"""The kernel of pages that enter attention by an estimate: an entry in place of some tokens."""

from collections.abc import Mapping

from tilewright.attention.codegen.kernels.compute import scratch_holds
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid, Scratch, ScratchAxis
from tilewright.attention.codegen.source.row import RowForm, need_reserved, row_preamble, row_start
from tilewright.attention.codegen.source.tree import Loop, Statement, code
from tilewright.attention.graph import Branch, DType, Estimate, EstimateOver, Geometry, Node

_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


def estimate_scratch(sizes: Geometry, suffix: str) -> tuple[Scratch, ...]:
    """Return what an estimate leaves: the attention over its entries, and their log-sum-exp."""
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch(f"estimate{suffix}", ScratchAxis.ROWS, (heads, width), DType.FLOAT32),
        Scratch(f"estimate_sum{suffix}", ScratchAxis.ROWS, (heads,), DType.FLOAT32),
    )


def emit_estimate_pages(
    form: RowForm, branch: Branch, estimate: Estimate, names: Mapping[Node, str]
) -> Emitted:
    """Emit an online softmax over entries of all pages, or of those that were not read."""
    body = Body()
    for node in (estimate.logits, estimate.values):
        body.need(names[node], scratch_holds(node))
    sizes, suffix = form.sizes, form.suffix
    start = row_preamble(body, sizes.page_size)
    heads, width = sizes.query_heads, sizes.value_dim
    rows, columns = (max(_SMALLEST_DOT, padded(size)) for size in (heads, width))
    entries = estimate.logits.type.shape[0]
    tile = max(_SMALLEST_DOT, form.tiling.attend_tokens)
    logits, values = (row_start(body, names[n]) for n in (estimate.logits, estimate.values))
    skips = estimate.over is EstimateOver.UNSELECTED and branch.selection is not None
    turn = code(f"""
        entry = start + tl.arange(0, {tile})[:, None]
        counts = (entry < num_entries) & (query_head < {heads})
    """)
    if skips:
        turn += _skip_code(branch.selection, names, entries, body)
    turn += code(f"""
        places = {logits} + entry * {heads} + query_head
        logits = tl.load(places, mask=counts, other=float("-inf"))
        places = {values} + entry * {width} + value_channel
        there = tl.max(counts.to(tl.int32), 1, keep_dims=True) != 0
        values = tl.load(places, mask=there & (value_channel < {width}), other=0)
    """)
    turn += code(_SOFTMAX)
    body.statements += start
    body.add(f"""
        num_entries = num_pages * {entries}
        query_head = tl.arange(0, {rows})[None, :]
        value_channel = tl.arange(0, {columns})[None, :]
        largest = tl.full((1, {rows}), float("-inf"), tl.float32)
        total = tl.zeros((1, {rows}), tl.float32)
        weighted = tl.zeros(({rows}, {columns}), tl.float32)
    """)
    body.statements.append(Loop.over("start", "0", "num_entries", tile, turn))
    body.statements += _end_code(sizes, suffix, body)
    purpose = "Attention over estimates of pages: a program for each row."
    numbers = entries * (heads + width) * NUMBER_BYTES + skips
    traffic = Traffic(Stage.ATTENTION, heads * (width + 1) * NUMBER_BYTES, numbers)
    return Emitted.of(f"estimate_pages{suffix}", purpose, body, Grid.ROWS, traffic)


_SOFTMAX = """
    new_largest = tl.maximum(largest, tl.max(logits, 0, keep_dims=True))
    shift = tl.where(new_largest == float("-inf"), 0.0, new_largest)
    weights = tl.exp(logits - shift)
    earlier = tl.exp(largest - shift)
    total = total * earlier + tl.sum(weights, 0, keep_dims=True)
    product = tl.dot(tl.trans(weights), values, input_precision="ieee")
    weighted = weighted * tl.trans(earlier) + product
    largest = new_largest
"""


def _skip_code(
    selection: Node | None, names: Mapping[Node, str], entries: int, body: Body
) -> list[Statement]:
    """Leave out entries of pages that are read: by a query head, or by all of them."""
    if selection is None:
        return []
    columns = selection.type.shape[1]
    marks = body.need(names[selection], scratch_holds(selection))
    need_reserved(body)
    body.need("reads_all", "int8 [rows]: whether the plan makes a row dense")
    place = f"page * {columns} + query_head" if columns > 1 else "page"
    return code(f"""
        page = entry // {entries}
        read = tl.load({row_start(body, marks)} + {place}, mask=counts, other=0)
        ends = (page < first_reserved) | (page >= num_pages - last_reserved)
        read = read | ends.to(tl.int8) | tl.load(reads_all + row)
        counts = counts & (read == 0)
    """)


def _end_code(sizes: Geometry, suffix: str, body: Body) -> list[Statement]:
    heads, width = sizes.query_heads, sizes.value_dim
    out, sums = (item.name for item in estimate_scratch(sizes, suffix))
    body.need(out, f"float32 [rows, {heads}, {width}]")
    body.need(sums, f"float32 [rows, {heads}]")
    return code(f"""
        largest, total = tl.trans(largest), tl.trans(total)
        query_head = tl.trans(query_head)
        found = tl.div_rn(weighted, tl.where(total == 0.0, 1.0, total))
        places = {row_start(body, out)} + query_head * {width} + value_channel
        tl.store(places, found, mask=(query_head < {heads}) & (value_channel < {width}))
        places = {row_start(body, sums)} + query_head
        tl.store(places, largest + tl.log(total), mask=query_head < {heads})
    """)
