"""The kernel of pages that enter attention by an estimate: an entry in place of some tokens."""

from collections.abc import Mapping

from tilewright.attention.codegen.expression.leaf_loads import scratch_holds
from tilewright.attention.codegen.kernels.merge import head_masks, output_places
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import Emitted, Grid
from tilewright.attention.codegen.source.row import RowForm, row_preamble, row_start
from tilewright.attention.codegen.source.tree import Source, lines
from tilewright.attention.graph import Branch, Estimate, EstimateOver, Node

_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


def emit_estimate_pages(
    form: RowForm, branch: Branch, estimate: Estimate, names: Mapping[Node, str]
) -> Emitted:
    """Emit an online softmax over entries of all pages, or of those that were not read."""
    body, sizes = Body(), form.sizes
    for node in (estimate.logits, estimate.values):
        body.need(names[node], scratch_holds(node))
    start = row_preamble(body, sizes.page_size)
    heads, width = sizes.query_heads, sizes.value_dim
    rows, columns = (max(_SMALLEST_DOT, padded(size)) for size in (heads, width))
    entries = estimate.logits.type.shape[0]
    tile = max(_SMALLEST_DOT, form.tiling.attend_tokens)
    logits, values = (row_start(body, names[n]) for n in (estimate.logits, estimate.values))
    skip = ""
    if estimate.over is EstimateOver.UNSELECTED and branch.selection is not None:
        skip = _skip_code(branch.selection, names, entries, body)
    places, sum_places = output_places(
        sizes, body, f"estimate{form.suffix}", f"estimate_sum{form.suffix}"
    )
    in_heads, in_channels = head_masks(sizes)
    body.add(f"""
        {start}
        num_entries = num_pages * {entries}
        query_head = tl.arange(0, {rows})[None, :]
        value_channel = tl.arange(0, {columns})[None, :]
        largest = tl.full((1, {rows}), float("-inf"), tl.float32)
        total = tl.zeros((1, {rows}), tl.float32)
        weighted = tl.zeros(({rows}, {columns}), tl.float32)
        for start in range(0, num_entries, {tile}):
            entry = start + tl.arange(0, {tile})[:, None]
            counts = (entry < num_entries) & ({in_heads})
            {skip}
            places = {logits} + entry * {heads} + query_head
            logits = tl.load(places, mask=counts, other=float("-inf"))
            places = {values} + entry * {width} + value_channel
            there = tl.max(counts.to(tl.int32), 1, keep_dims=True) != 0
            values = tl.load(places, mask=there & (value_channel < {width}), other=0)
            new_largest = tl.maximum(largest, tl.max(logits, 0, keep_dims=True))
            shift = tl.where(new_largest == float("-inf"), 0.0, new_largest)
            weights = tl.exp(logits - shift)
            earlier = tl.exp(largest - shift)
            total = total * earlier + tl.sum(weights, 0, keep_dims=True)
            product = tl.dot(tl.trans(weights), values, input_precision="ieee")
            weighted = weighted * tl.trans(earlier) + product
            largest = new_largest
        largest, total = tl.trans(largest), tl.trans(total)
        query_head = tl.trans(query_head)
        found = tl.div_rn(weighted, tl.where(total == 0.0, 1.0, total))
        places = {places}
        tl.store(places, found, mask={in_channels})
        places = {sum_places}
        tl.store(places, largest + tl.log(total), mask={in_heads})
    """)
    purpose = "Attention over estimates of pages: a program for each row."
    page_bytes = entries * (heads + width) * NUMBER_BYTES + bool(skip)
    traffic = Traffic(Stage.ATTENTION, heads * (width + 1) * NUMBER_BYTES, page_bytes)
    return Emitted.of(f"estimate_pages{form.suffix}", purpose, body, Grid.ROWS, traffic)


def _skip_code(selection: Node, names: Mapping[Node, str], entries: int, body: Body) -> Source:
    """Leave out entries of pages that are read: by a query head, or by all of them."""
    columns = selection.type.shape[1]
    marks = body.need(names[selection], scratch_holds(selection))
    body.need_all("first_reserved", "last_reserved", "reads_all")
    place = f"page * {columns} + query_head" if columns > 1 else "page"
    return lines(f"""
        page = entry // {entries}
        read = tl.load({row_start(body, marks)} + {place}, mask=counts, other=0)
        ends = (page < first_reserved) | (page >= num_pages - last_reserved)
        read = read | ends.to(tl.int8) | tl.load(reads_all + row)
        counts = counts & (read == 0)
    """)
