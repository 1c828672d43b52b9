"""The kernels of flows with several branches, gates or estimates: attention of each, then a sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.attention.codegen.expression.leaf_loads import scratch_holds
from tilewright.attention.codegen.kernels.attend import emit_attend_pages
from tilewright.attention.codegen.kernels.estimate import emit_estimate_pages
from tilewright.attention.codegen.kernels.list_pages import emit_list_pages
from tilewright.attention.codegen.kernels.merge import emit_merge_parts, head_masks, output_places
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
    parts_of,
)
from tilewright.attention.codegen.source.row import RowForm, row_start
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import Branch, Geometry, Graph, Node


@dataclass(frozen=True, slots=True)
class BranchKernels:
    """Kernels in their order, the memory between them, and what they leave."""

    emitted: list[Emitted] = field(default_factory=list)
    scratch: list[Scratch] = field(default_factory=list)
    results: list[Scratch] = field(default_factory=list)


def is_plain(graph: Graph) -> bool:
    """Tell whether attention over one selection is the whole result."""
    first, *others = graph.output.branches
    return not others and first.gate is None and first.estimate is None


def branch_kernels(graph: Graph, form: RowForm, names: Mapping[Node, str]) -> BranchKernels:
    """Emit what follows the indexer, whose values ``names`` has the memory of.

    Branch i has its lists, its attention and its log-sum-exp under names with the suffix ``_i``.
    """
    sizes, branches, found = graph.geometry, graph.output.branches, BranchKernels()
    weighed: list[Weighed] = []
    for place, branch in enumerate(branches):
        own_form = replace(form, suffix=f"_{place}")
        if branch.selection is not None:
            marks, columns = names[branch.selection], branch.selection.type.shape[1]
            found.emitted.extend(
                [
                    emit_list_pages(
                        own_form, chosen=marks, columns=columns, axis=ScratchAxis.PAGES
                    ),
                    emit_attend_pages(own_form, chosen=marks if columns > 1 else None),
                    *([emit_merge_parts(own_form)] if form.has_parts else []),
                ]
            )
            found.scratch.extend(_suffixed(place, *outputs_of(sizes), *parts_of(form)))
            found.results.extend(_suffixed(place, *lists_of(form)))
            weighed.append(Weighed(marks, columns, f"log_sum_exp_{place}"))
        if branch.estimate is not None:
            found.emitted.append(emit_estimate_pages(own_form, branch, branch.estimate, names))
            estimate = outputs_of(sizes, "estimate", "estimate_sum")
            found.scratch.extend(_suffixed(place, *estimate))
    found.emitted.append(_emit_combine_branches(sizes, branches, names))
    if wants_mass(graph):
        found.emitted.append(emit_weigh_pages(form, weighed))
    found.results.extend(outputs_of(sizes)[: 1 + _is_one_softmax(branches)])
    return found


def _suffixed(place: int, *scratch: Scratch) -> tuple[Scratch, ...]:
    return tuple(replace(item, name=f"{item.name}_{place}") for item in scratch)


def _is_one_softmax(branches: Sequence[Branch]) -> bool:
    """Tell whether the result is the output of one softmax, and so has a log-sum-exp."""
    return len(branches) == 1 and branches[0].gate is None


def _emit_combine_branches(
    sizes: Geometry, branches: Sequence[Branch], names: Mapping[Node, str]
) -> Emitted:
    """Emit the sum of all branches; of a dense row it is the first branch that reads pages."""
    body = Body()
    heads, width = sizes.query_heads, sizes.value_dim
    in_heads, in_channels = head_masks(sizes)
    dense = next(place for place, item in enumerate(branches) if item.selection is not None)
    sides = joined(
        _branch_code(sizes, branch, place, names, body) for place, branch in enumerate(branches)
    )
    terms = " + ".join(f"found_{place}" for place in range(len(branches)))
    body.need("reads_all")
    body.need("output", f"float32 [rows, {heads}, {width}]")
    body.add(f"""
        row = tl.program_id(0).to(tl.int64)
        query_head = tl.arange(0, {padded(heads)})[:, None]
        value_channel = tl.arange(0, {padded(width)})[None, :]
        {sides}
        is_dense = tl.load(reads_all + row) != 0
        found = tl.where(is_dense, exact_{dense}, {terms})
        places = {row_start(body, "output")} + query_head * {width} + value_channel
        tl.store(places, found, mask={in_channels})
    """)
    if _is_one_softmax(branches):
        _, places = output_places(sizes, body, "output", "log_sum_exp")
        whole = "tl.where(is_dense, exact_sum_0, sum_0)"
        body.add(f"tl.store({places}, {whole}, mask={in_heads})")
    purpose = "Branches times their gates: a program for each row."
    arrays = 1 + sum(
        (item.selection is not None) + (item.estimate is not None) for item in branches
    )
    traffic = Traffic(Stage.MERGE, row_bytes=arrays * heads * (width + 1) * NUMBER_BYTES)
    return Emitted.of("combine_branches", purpose, body, Grid.ROWS, traffic)


def _branch_code(
    sizes: Geometry, branch: Branch, place: int, names: Mapping[Node, str], body: Body
) -> Source:
    """Set the branch as ``found_0``, and its log-sum-exp as ``sum_0``."""
    in_heads, in_channels = head_masks(sizes)
    arrays, loads, gated = {}, [], ""
    if branch.selection is not None:
        arrays["exact"] = "output", "log_sum_exp"
    if branch.estimate is not None:
        arrays["guess"] = "estimate", "estimate_sum"
    for name, (values, sums) in arrays.items():
        places, sum_places = output_places(sizes, body, f"{values}_{place}", f"{sums}_{place}")
        loads.append(
            lines(f"""
            {name}_{place} = tl.load({places}, mask={in_channels}, other=0)
            {name}_sum_{place} = tl.load({sum_places}, mask={in_heads}, other=0)
        """)
        )
    if branch.gate is not None:
        start = row_start(body, body.need(names[branch.gate], scratch_holds(branch.gate)))
        loaded = f"tl.load({start})"
        if branch.gate.type.shape[0] > 1:
            loaded = f"tl.load({start} + query_head, mask={in_heads}, other=0)"
        gated = f"found_{place} = found_{place} * {loaded}"
    return joined([*loads, _joined_code(list(arrays), place), gated])


def _joined_code(sides: Sequence[str], place: int) -> Source:
    """Join exact attention and estimate to one softmax; a side without tokens adds nothing."""
    if len(sides) == 1:
        only = sides[0]
        return lines(f"found_{place} = {only}_{place}; sum_{place} = {only}_sum_{place}")
    return lines(f"""
        largest = tl.maximum(exact_sum_{place}, guess_sum_{place})
        shift = tl.where(largest == float("-inf"), 0.0, largest)
        read = tl.exp(exact_sum_{place} - shift)
        guessed = tl.exp(guess_sum_{place} - shift)
        total = read + guessed
        divisor = tl.where(total == 0.0, 1.0, total)
        found_{place} = tl.div_rn(exact_{place} * read + guess_{place} * guessed, divisor)
        sum_{place} = shift + tl.log(total)
    """)
