"""From a verified graph to the kernels of a flow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.attention.codegen.attend_pages import emit_attend_pages
from tilewright.attention.codegen.body import Body
from tilewright.attention.codegen.complete_pages import emit_complete_pages
from tilewright.attention.codegen.compute_pages import emit_compute_pages
from tilewright.attention.codegen.helpers import helpers_of
from tilewright.attention.codegen.kernel_file import (
    Kernel,
    KernelFile,
    Scratch,
    ScratchAxis,
)
from tilewright.attention.codegen.list_pages import emit_list_pages
from tilewright.attention.codegen.merge_parts import emit_merge_parts, part_scratch
from tilewright.attention.codegen.naming import name_values
from tilewright.attention.codegen.rounds import is_row_op, page_roots, round_of
from tilewright.attention.codegen.row_kernel import emit_row_op
from tilewright.attention.codegen.row_text import RowForm
from tilewright.attention.codegen.select_kernel import emit_select
from tilewright.attention.codegen.slice_loads import push_slices
from tilewright.attention.codegen.target import Merge, Target
from tilewright.attention.codegen.tiling import Tiling
from tilewright.attention.graph import (
    FORMAT,
    DType,
    Geometry,
    Graph,
    Node,
    graph_hash,
    verify_graph,
)
from tilewright.attention.ops import selection
from tilewright.errors import CodegenError

__all__ = ("compile_graph",)


def compile_graph(
    graph: Graph, tiling: Tiling | None = None, target: Target | None = None
) -> KernelFile:
    """The kernels of one flow; pure. A `CodegenError` names what cannot be put into kernels.

    With a target programs have whole rows, or a member's share of one; else tiles and parts.
    """
    verify_graph(graph)
    graph = push_slices(graph)
    chosen = _check_supported(graph)
    sizes = graph.geometry
    cut = tiling or (Tiling() if target is None else Tiling.for_target(sizes, target))
    form = RowForm(sizes.page_size, target)
    parts = _Parts(graph, cut, form)
    completion = emit_complete_pages(graph)
    marks = parts.add_indexer(chosen)
    columns = chosen.type.shape[1]
    parts.add(emit_list_pages(cut, form, chosen=marks, columns=columns, axis=ScratchAxis.PAGES))
    parts.add(emit_attend_pages(sizes, cut, form, chosen=marks if columns > 1 else None))
    has_parts = target is None or target.members > 1
    if has_parts:
        parts.add(emit_merge_parts(sizes, cut, form))
    kernels = [*([completion[1]] if completion else []), *parts.texts]
    texts = [_head(graph), *helpers_of(kernels), *kernels]
    return KernelFile(
        flow=graph.name,
        geometry=sizes,
        tiling=cut,
        target=target,
        text="\n\n".join(texts),
        completion=completion[0] if completion else None,
        step=tuple(parts.kernels),
        scratch=(*parts.scratch, *(part_scratch(sizes) if has_parts else ())),
        results=(*_lists(form), *_outputs(sizes)),
        marks=marks,
        merge=Merge.MEMORY,
    )


def _lists(form: RowForm) -> tuple[Scratch, ...]:
    pages, one = ScratchAxis.PAGES, ScratchAxis.ROWS
    if form.part is not None:
        pages, one = ScratchAxis.MEMBER_PAGES, ScratchAxis.PARTS
    return (
        Scratch("page_list", pages, (), DType.INT32),
        Scratch("list_length", one, (), DType.INT32),
        Scratch("list_tokens", one, (), DType.INT32),
    )


def _outputs(sizes: Geometry) -> tuple[Scratch, ...]:
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch("output", ScratchAxis.ROWS, (heads, width), DType.FLOAT32),
        Scratch("log_sum_exp", ScratchAxis.ROWS, (heads,), DType.FLOAT32),
    )


def _head(graph: Graph) -> str:
    sizes = graph.geometry
    return "\n".join(
        [
            f'"""Kernels of the flow {graph.name}, generated from graph {graph_hash(graph)[:12]}.',
            "",
            f"{sizes.kind}: pages of {sizes.page_size} tokens, {sizes.query_heads} query heads,",
            f"keys of {sizes.key_dim} and values of {sizes.value_dim} channels.",
            '"""',
            "",
            "import triton",
            "import triton.language as tl",
            "",
        ]
    )


def _check_supported(graph: Graph) -> Node:
    """The one selection of a flow that can be compiled."""
    where = f"flow {graph.name!r}"
    fix = "run this flow on the reference backend"
    found = []
    if graph.states:
        found.append(f"state {', '.join(item.name for item in graph.states)}")
    if len(graph.output.branches) != 1:
        found.append(f"{len(graph.output.branches)} branches")
    branch = graph.output.branches[0]
    if branch.gate is not None or branch.estimate is not None:
        found.append("a gate or an estimate")
    if found or branch.selection is None:
        expected = "one selection without state, learned parameters, gate or estimate"
        raise CodegenError(where, " and ".join(found) or "no selection", expected, fix)
    if graph.geometry.kv_dtype is DType.INT4:
        expected = "elements of whole bytes"
        raise CodegenError(where, "keys and values in int4", expected, "keep them in int8")
    return branch.selection


@dataclass(slots=True)
class _Parts:
    """Kernels of a step in their order, their texts, and the memory between them."""

    graph: Graph
    tiling: Tiling
    form: RowForm
    kernels: list[Kernel] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scratch: list[Scratch] = field(default_factory=list)
    row_kernels: int = 0

    def add(self, emitted: tuple[Kernel, str]) -> None:
        self.kernels.append(emitted[0])
        self.texts.append(emitted[1])

    def add_indexer(self, chosen: Node) -> str:
        """Page kernels and row kernels, round by round; returns the memory of the marks."""
        rounds = round_of(self.graph)
        names = _scratch_names(rounds)
        for index in range(max(rounds.values()) + 1):
            roots = page_roots(rounds, (chosen,), index)
            if roots:
                self.add(
                    emit_compute_pages(
                        self.graph, self.tiling, self.form, index, roots, rounds, names
                    )
                )
            for node in roots:
                self._keep(node, names[node])
            for node in [item for item, at in rounds.items() if at == index and is_row_op(item)]:
                self._add_row_op(node, names)
        return names[chosen]

    def _add_row_op(self, node: Node, names: Mapping[Node, str]) -> None:
        index, source = self.row_kernels, names[node.inputs[0]]
        if isinstance(node.op, selection.SelectionOp):
            emitted = emit_select(
                self.graph, self.tiling, node, index, scores=source, chosen=names[node]
            )
        else:
            emitted = emit_row_op(
                self.graph, self.tiling, node, index, operand=source, result=names[node]
            )
        self.add(emitted)
        self._keep(node, names[node])
        self.row_kernels += 1

    def _keep(self, node: Node, name: str) -> None:
        per_row = node.type.format is FORMAT.BATCHED
        axis = ScratchAxis.ROWS if per_row else ScratchAxis.PAGES
        dtype = node.type.dtype.computed
        kept = DType.INT8 if dtype is DType.BOOL else dtype
        self.scratch.append(Scratch(name, axis, node.type.shape, kept))


def _scratch_names(rounds: Mapping[Node, int]) -> dict[Node, str]:
    names = name_values(rounds, Body(page_tokens=None))
    return {node: f"{name}_scratch" for node, name in names.items()}
