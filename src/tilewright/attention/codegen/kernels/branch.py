"""The kernels of flows with several branches, gates or estimates: attention of each, then a sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.attention.codegen.kernels.attend import emit_attend_pages
from tilewright.attention.codegen.kernels.compute import scratch_holds
from tilewright.attention.codegen.kernels.estimate import emit_estimate_pages, estimate_scratch
from tilewright.attention.codegen.kernels.list_pages import emit_list_pages
from tilewright.attention.codegen.kernels.merge import emit_merge_parts, head_mask, part_scratch
from tilewright.attention.codegen.kernels.weigh import Weighed, emit_weigh_pages, wants_mass
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.file import (
    Emitted,
    Grid,
    Scratch,
    ScratchAxis,
    lists_of,
    outputs_of,
)
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Statement, code
from tilewright.attention.graph import Branch, Geometry, Graph, Node


@dataclass(frozen=True, slots=True)
class BranchKernels:
    """Kernels in their order, the memory between them, and what they leave."""

    emitted: tuple[Emitted, ...]
    scratch: tuple[Scratch, ...]
    results: tuple[Scratch, ...]


def is_plain(graph: Graph) -> bool:
    """Tell whether attention over one selection is the whole result."""
    first, *others = graph.output.branches
    return not others and first.gate is None and first.estimate is None


def branch_kernels(graph: Graph, form: RowForm, names: Mapping[Node, str]) -> BranchKernels:
    """Emit what follows the indexer, whose values ``names`` has the memory of.

    Branch i has its lists, its attention and its log-sum-exp under names with the suffix ``_i``.
    """
    sizes, branches = graph.geometry, graph.output.branches
    emitted: list[Emitted] = []
    scratch: list[Scratch] = []
    results: list[Scratch] = []
    weighed: list[Weighed] = []
    for place, branch in enumerate(branches):
        suffix = f"_{place}"
        own_form = replace(form, suffix=suffix)
        if branch.selection is not None:
            emitted += _attention(branch.selection, own_form, names)
            own = (*outputs_of(sizes), *(part_scratch(sizes) if form.has_parts else ()))
            scratch += _suffixed(own, suffix)
            results += _suffixed(lists_of(form), suffix)
            weighed.append(_weighed(branch.selection, names, suffix))
        if branch.estimate is not None:
            emitted.append(emit_estimate_pages(own_form, branch, branch.estimate, names))
            scratch += estimate_scratch(sizes, suffix)
    emitted.append(emit_combine_branches(sizes, branches, names))
    if wants_mass(graph):
        emitted.append(emit_weigh_pages(form, weighed))
    output, sums = outputs_of(sizes)
    results += [output, sums] if is_one_softmax(branches) else [output]
    return BranchKernels(tuple(emitted), tuple(scratch), tuple(results))


def _attention(selection: Node, form: RowForm, names: Mapping[Node, str]) -> list[Emitted]:
    marks, columns = names[selection], selection.type.shape[1]
    pages = ScratchAxis.PAGES
    emitted = [
        emit_list_pages(form, chosen=marks, columns=columns, axis=pages),
        emit_attend_pages(form, chosen=marks if columns > 1 else None),
    ]
    return [*emitted, emit_merge_parts(form)] if form.has_parts else emitted


def _suffixed(scratch: tuple[Scratch, ...], suffix: str) -> tuple[Scratch, ...]:
    return tuple(replace(item, name=f"{item.name}{suffix}") for item in scratch)


def _weighed(selection: Node, names: Mapping[Node, str], suffix: str) -> Weighed:
    return Weighed(names[selection], selection.type.shape[1], f"log_sum_exp{suffix}")


def is_one_softmax(branches: Sequence[Branch]) -> bool:
    """Tell whether the result is the output of one softmax, and so has a log-sum-exp."""
    return len(branches) == 1 and branches[0].gate is None


def emit_combine_branches(
    sizes: Geometry, branches: Sequence[Branch], names: Mapping[Node, str]
) -> Emitted:
    """Emit the sum of all branches; of a dense row it is the first branch that reads pages."""
    body = Body()
    heads, width = sizes.query_heads, sizes.value_dim
    dense = next(place for place, item in enumerate(branches) if item.selection is not None)
    lines = []
    for place, branch in enumerate(branches):
        lines += _branch_code(sizes, branch, place, names, body)
    terms = " + ".join(f"found_{place}" for place in range(len(branches)))
    body.need("reads_all", "int8 [rows]: whether the plan makes a row dense")
    body.need("output", f"float32 [rows, {heads}, {width}]")
    body.add(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {padded(heads)})[:, None]
        value_channel = tl.arange(0, {padded(width)})[None, :]
    """)
    body.statements += lines
    body.add(f"""
        is_dense = tl.load(reads_all + row) != 0
        found = tl.where(is_dense, exact_{dense}, {terms})
        places = {row_start(body, "output")} + query_head * {width} + value_channel
        tl.store(places, found, mask={head_mask(sizes)})
    """)
    if is_one_softmax(branches):
        body.need("log_sum_exp", f"float32 [rows, {heads}]")
        places = f"{row_start(body, 'log_sum_exp')} + query_head"
        whole = "tl.where(is_dense, exact_sum_0, sum_0)"
        body.add(f"tl.store({places}, {whole}, mask=query_head < {heads})")
    purpose = "Branches times their gates: a program for each row."
    arrays = 1 + sum(
        (item.selection is not None) + (item.estimate is not None) for item in branches
    )
    traffic = Traffic(Stage.MERGE, row_bytes=arrays * heads * (width + 1) * NUMBER_BYTES)
    return Emitted.of("combine_branches", purpose, body, Grid.ROWS, traffic)


def _branch_code(
    sizes: Geometry, branch: Branch, place: int, names: Mapping[Node, str], body: Body
) -> list[Statement]:
    """Set the branch as ``found_0``, and its log-sum-exp as ``sum_0``."""
    lines: list[Statement] = []
    if branch.selection is not None:
        arrays = (f"output_{place}", f"log_sum_exp_{place}")
        lines += _load_code(sizes, arrays, (f"exact_{place}", f"exact_sum_{place}"), body)
    if branch.estimate is not None:
        of_estimate = tuple(item.name for item in estimate_scratch(sizes, f"_{place}"))
        lines += _load_code(sizes, of_estimate, (f"guess_{place}", f"guess_sum_{place}"), body)
    lines += _joined_code(branch, place)
    if branch.gate is None:
        return lines
    gate = body.need(names[branch.gate], scratch_holds(branch.gate))
    start, heads = row_start(body, gate), sizes.query_heads
    loaded = f"tl.load({start})"
    if branch.gate.type.shape[0] > 1:
        loaded = f"tl.load({start} + query_head, mask=query_head < {heads}, other=0)"
    return [*lines, *code(f"found_{place} = found_{place} * {loaded}")]


def _load_code(
    sizes: Geometry, arrays: tuple[str, ...], names: tuple[str, str], body: Body
) -> list[Statement]:
    heads, width = sizes.query_heads, sizes.value_dim
    out, sums = arrays
    body.need(out, f"float32 [rows, {heads}, {width}]")
    body.need(sums, f"float32 [rows, {heads}]")
    places = f"{row_start(body, out)} + query_head * {width} + value_channel"
    sum_places = f"{row_start(body, sums)} + query_head"
    return code(f"""
        {names[0]} = tl.load({places}, mask={head_mask(sizes)}, other=0)
        {names[1]} = tl.load({sum_places}, mask=query_head < {heads}, other=0)
    """)


def _joined_code(branch: Branch, place: int) -> list[Statement]:
    """Join exact attention and estimate to one softmax; a side without tokens adds nothing."""
    exact, guess = f"exact_{place}", f"guess_{place}"
    if branch.estimate is None or branch.selection is None:
        only, sums = (exact, "exact_sum") if branch.estimate is None else (guess, "guess_sum")
        return code(f"found_{place} = {only}; sum_{place} = {sums}_{place}")
    return code(f"""
        largest = tl.maximum(exact_sum_{place}, guess_sum_{place})
        shift = tl.where(largest == float("-inf"), 0.0, largest)
        read = tl.exp(exact_sum_{place} - shift)
        guessed = tl.exp(guess_sum_{place} - shift)
        total = read + guessed
        divisor = tl.where(total == 0.0, 1.0, total)
        found_{place} = tl.div_rn({exact} * read + {guess} * guessed, divisor)
        sum_{place} = shift + tl.log(total)
    """)
