"""The kernels of flows with several branches, gates or estimates: attention of each, then a sum."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.attention.codegen.attend_pages import emit_attend_pages
from tilewright.attention.codegen.combine_branches import emit_combine_branches, is_one_softmax
from tilewright.attention.codegen.estimate_pages import emit_estimate_pages, estimate_scratch
from tilewright.attention.codegen.file_text import lists_of, outputs_of
from tilewright.attention.codegen.kernel_file import Emitted, Scratch, ScratchAxis
from tilewright.attention.codegen.list_pages import emit_list_pages
from tilewright.attention.codegen.merge_parts import emit_merge_parts, part_scratch
from tilewright.attention.codegen.row_text import RowForm
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.codegen.weigh_pages import Weighed, emit_weigh_pages, wants_mass
from tilewright.attention.graph import Graph, Node

__all__ = ("BranchKernels", "branch_kernels", "is_plain")


@dataclass(frozen=True, slots=True)
class BranchKernels:
    """Kernels in their order, the memory between them, and what they leave."""

    emitted: tuple[Emitted, ...]
    scratch: tuple[Scratch, ...]
    results: tuple[Scratch, ...]


def is_plain(graph: Graph) -> bool:
    """Whether attention over one selection is the whole result."""
    first, *others = graph.output.branches
    return not others and first.gate is None and first.estimate is None


def branch_kernels(
    graph: Graph, tiling: Tiling, form: RowForm, names: Mapping[Node, str]
) -> BranchKernels:
    """Behind the indexer, whose values ``names`` has the memory of.

    Branch i has its lists, its attention and its log-sum-exp under names with the suffix ``_i``.
    """
    sizes, branches = graph.geometry, graph.output.branches
    emitted: list[Emitted] = []
    scratch: list[Scratch] = []
    results: list[Scratch] = []
    weighed: list[Weighed] = []
    for place, branch in enumerate(branches):
        suffix = f"_{place}"
        if branch.selection is not None:
            own_form = replace(form, suffix=suffix)
            emitted += _attention(branch.selection, graph, tiling, own_form, names)
            own = (*outputs_of(sizes), *(part_scratch(sizes) if form.has_parts else ()))
            scratch += _suffixed(own, suffix)
            results += _suffixed(lists_of(form), suffix)
            weighed.append(_weighed(branch.selection, names, suffix))
        if branch.estimate is not None:
            estimate = (branch, branch.estimate, names, suffix)
            emitted.append(emit_estimate_pages(sizes, tiling, *estimate))
            scratch += estimate_scratch(sizes, suffix)
    emitted.append(emit_combine_branches(sizes, branches, names))
    if wants_mass(graph):
        emitted.append(emit_weigh_pages(sizes, tiling, form, weighed))
    output, sums = outputs_of(sizes)
    results += [output, sums] if is_one_softmax(branches) else [output]
    return BranchKernels(tuple(emitted), tuple(scratch), tuple(results))


def _attention(
    selection: Node, graph: Graph, tiling: Tiling, form: RowForm, names: Mapping[Node, str]
) -> list[Emitted]:
    sizes, marks, columns = graph.geometry, names[selection], selection.type.shape[1]
    pages = ScratchAxis.PAGES
    emitted = [
        emit_list_pages(tiling, form, chosen=marks, columns=columns, axis=pages),
        emit_attend_pages(sizes, tiling, form, chosen=marks if columns > 1 else None),
    ]
    return [*emitted, emit_merge_parts(sizes, tiling, form)] if form.has_parts else emitted


def _suffixed(scratch: tuple[Scratch, ...], suffix: str) -> tuple[Scratch, ...]:
    return tuple(replace(item, name=f"{item.name}{suffix}") for item in scratch)


def _weighed(selection: Node, names: Mapping[Node, str], suffix: str) -> Weighed:
    return Weighed(names[selection], selection.type.shape[1], f"log_sum_exp{suffix}")
