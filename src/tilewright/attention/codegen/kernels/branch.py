"""The kernels of flows with several branches, gates or estimates: attention of each, then a sum."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.attention.codegen.expression.memory import scratch_holds
from tilewright.attention.codegen.kernels.attend import emit_attend_pages
from tilewright.attention.codegen.kernels.merge import emit_merge_parts, head_masks, output_places
from tilewright.attention.codegen.kernels.select import emit_list_pages
from tilewright.attention.codegen.kernels.weigh import Weighed, emit_weigh_pages
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body, Names
from tilewright.attention.codegen.source.file import (
    Emitted,
    FileParts,
    Grid,
    Scratch,
    ScratchAxis,
    lists_of,
    outputs_of,
    parts_of,
)
from tilewright.attention.codegen.source.row import RowForm, row_preamble, row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import Branch, Estimate, EstimateOver, Graph, Node
from tilewright.attention.ops.leaf import wants_mass


def add_branches(parts: FileParts, graph: Graph, names: Names) -> list[Scratch]:
    """Add what follows the indexer, whose values ``names`` has the memory of; return the results.

    Branch i has its lists, its attention and its log-sum-exp under names with the suffix ``_i``.
    """
    branches, form = graph.output.branches, parts.form
    results: list[Scratch] = []
    weighed: list[Weighed] = []
    for place, branch in enumerate(branches):
        own_form = replace(form, suffix=f"_{place}")
        if branch.selection is not None:
            marks, columns = names[branch.selection], branch.selection.type.shape[1]
            parts.kernels += [
                emit_list_pages(own_form, chosen=marks, columns=columns, axis=ScratchAxis.PAGES),
                emit_attend_pages(own_form, chosen=marks if columns > 1 else None),
            ]
            parts.kernels += [emit_merge_parts(own_form)] if form.has_parts else []
            parts.scratch += [*outputs_of(own_form), *parts_of(own_form)]
            results += lists_of(own_form)
            weighed.append(Weighed(marks, columns, f"log_sum_exp_{place}"))
        if branch.estimate is not None:
            parts.kernels.append(emit_estimate_pages(own_form, branch, branch.estimate, names))
            parts.scratch += outputs_of(own_form, "estimate", "estimate_sum")
    arrays = len(weighed) + sum(item.estimate is not None for item in branches)
    parts.kernels.append(_emit_combine_branches(form, branches, names, arrays))
    if wants_mass(graph):
        parts.kernels.append(emit_weigh_pages(form, weighed))
    return [*results, *outputs_of(form)[: 1 + _is_one_softmax(branches)]]


def _is_one_softmax(branches: Sequence[Branch]) -> bool:
    """Tell whether the result is the output of one softmax, and so has a log-sum-exp."""
    return len(branches) == 1 and branches[0].gate is None


def _emit_combine_branches(
    form: RowForm, branches: Sequence[Branch], names: Names, arrays: int
) -> Emitted:
    """Emit the sum of all branches; of a dense row it is the first branch that reads pages."""
    body, sizes = Body(), form.sizes
    heads, width = sizes.query_heads, sizes.value_dim
    in_heads, in_channels = head_masks(sizes)
    dense = next(place for place, item in enumerate(branches) if item.selection is not None)
    sides = [_branch_code(form, item, place, names, body) for place, item in enumerate(branches)]
    terms = " + ".join(f"found_{place}" for place in range(len(branches)))
    body.need("reads_all")
    body.need("output", f"float32 [rows, {heads}, {width}]")
    body.add(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {padded(heads)})[:, None]
        value_channel = tl.arange(0, {padded(width)})[None, :]
        {joined(sides)}
        is_dense = tl.load(reads_all + row) != 0
        found = tl.where(is_dense, exact_{dense}, {terms})
        places = {row_start(body, "output")} + query_head * {width} + value_channel
        tl.store(places, found, mask={in_channels})
    """)
    if _is_one_softmax(branches):
        _, places = output_places(form, body, "output", "log_sum_exp")
        whole = "tl.where(is_dense, exact_sum_0, sum_0)"
        body.add(f"tl.store({places}, {whole}, mask={in_heads})")
    purpose = "Branches times their gates: a program for each row."
    traffic = Traffic(Stage.MERGE, row_bytes=(1 + arrays) * heads * (width + 1) * NUMBER_BYTES)
    return Emitted.of("combine_branches", purpose, body, Grid.ROWS, traffic)


def _branch_code(form: RowForm, branch: Branch, place: int, names: Names, body: Body) -> Source:
    """Set the branch as ``found_0``, and its log-sum-exp as ``sum_0``.

    Exact attention and estimate are joined to one softmax; a side without tokens adds nothing.
    """
    own, (in_heads, in_channels) = replace(form, suffix=f"_{place}"), head_masks(form.sizes)
    arrays, found = {}, []
    if branch.selection is not None:
        arrays["exact"] = "output", "log_sum_exp"
    if branch.estimate is not None:
        arrays["guess"] = "estimate", "estimate_sum"
    for name, (values, sums) in arrays.items():
        places, sum_places = output_places(own, body, values, sums)
        found += [
            f"{name}_{place} = tl.load({places}, mask={in_channels}, other=0)",
            f"{name}_sum_{place} = tl.load({sum_places}, mask={in_heads}, other=0)",
        ]
    if len(arrays) == 1:
        (only,) = arrays
        found.append(f"found_{place} = {only}_{place}; sum_{place} = {only}_sum_{place}")
    else:
        both = lines(f"""
            largest = tl.maximum(exact_sum_{place}, guess_sum_{place})
            shift = tl.where(largest == float("-inf"), 0.0, largest)
            read = tl.exp(exact_sum_{place} - shift)
            guessed = tl.exp(guess_sum_{place} - shift)
            total = read + guessed
            divisor = tl.where(total == 0.0, 1.0, total)
            found_{place} = tl.div_rn(exact_{place} * read + guess_{place} * guessed, divisor)
            sum_{place} = shift + tl.log(total)
        """)
        found.append(both)
    if branch.gate is not None:
        start = row_start(body, body.need(names[branch.gate], scratch_holds(branch.gate)))
        is_one = branch.gate.type.shape[0] == 1
        gates = start if is_one else f"{start} + query_head, mask={in_heads}, other=0"
        found.append(f"found_{place} = found_{place} * tl.load({gates})")
    return joined(found)


_SMALLEST_DOT = 16  # rows and columns that a product of blocks has at least


def emit_estimate_pages(form: RowForm, branch: Branch, estimate: Estimate, names: Names) -> Emitted:
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
    places, sum_places = output_places(form, body, "estimate", "estimate_sum")
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


def _skip_code(selection: Node, names: Names, entries: int, body: Body) -> Source:
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
