"""From a verified graph to the kernels of a flow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tilewright.attention.codegen.coverage import check_supported
from tilewright.attention.codegen.expression.elementwise import ELEMENTWISE
from tilewright.attention.codegen.kernels.attend import (
    attend_stages,
    emit_attend_pages,
)
from tilewright.attention.codegen.kernels.branch import add_branches
from tilewright.attention.codegen.kernels.complete import emit_complete_pages
from tilewright.attention.codegen.kernels.compute import (
    PageRound,
    page_kernel,
    page_work,
)
from tilewright.attention.codegen.kernels.merge import emit_merge_parts
from tilewright.attention.codegen.kernels.row import emit_row_op
from tilewright.attention.codegen.kernels.select import (
    emit_list_pages,
    emit_select,
    kept_of,
    list_stage,
)
from tilewright.attention.codegen.kernels.select_row import select_stages
from tilewright.attention.codegen.kernels.weigh import Weighed, emit_weigh_pages
from tilewright.attention.codegen.plan.fusion import (
    page_roots,
    plan_cut,
    round_of,
    writes_by_round,
)
from tilewright.attention.codegen.plan.slice_loads import push_slices
from tilewright.attention.codegen.plan.target import (
    Cut,
    Decision,
    Fusion,
    Merge,
    Selection,
    Target,
    Tiling,
)
from tilewright.attention.codegen.source.builder import Body, Names, name_values
from tilewright.attention.codegen.source.file import (
    FileParts,
    KernelFile,
    Scratch,
    ScratchAxis,
    StageFunction,
    emit_row_kernel,
    lists_of,
    outputs_of,
    parts_of,
)
from tilewright.attention.codegen.source.row import RowForm
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
from tilewright.attention.ops.leaf import wants_mass


def compile_graph(
    graph: Graph,
    tiling: Tiling | None = None,
    target: Target | None = None,
    cut: Cut | None = None,
    *,
    by_mass: bool = False,
    most: int | None = None,
) -> KernelFile:
    """Compile a flow to kernels, purely; a `CodegenError` names what cannot be put into kernels.

    With a target programs have whole rows, or a member's share of one; else tiles and parts. A cut
    that is given is taken as far as the flow and the target allow. With ``by_mass`` plans may ask
    for a share of the softmax over scores; with ``most`` they choose at most so many candidates of
    a row, or all.
    """
    verify_graph(graph)
    graph = push_slices(graph, ELEMENTWISE)
    check_supported(graph)
    tiles = tiling or (Tiling() if target is None else Tiling.for_target(graph.geometry, target))
    bound, branches = None if by_mass else most, graph.output.branches
    chosen = next(item.selection for item in branches if item.selection is not None)
    is_plain = len(branches) == 1 and branches[0].gate is None and branches[0].estimate is None
    form = RowForm(graph.geometry, tiles, target, kept=kept_of(chosen, bound, tiles))
    if is_plain:
        planned, decisions = _plan_row(graph, form, chosen, cut, by_mass=by_mass)
    else:
        why = "branches are joined behind their attention"
        decisions = tuple(Decision(item, is_accepted=False, reason=why) for item in Fusion)
        planned = replace(cut or Cut(), fusions=frozenset())
        if target is not None:
            form = replace(form, target=replace(target, merges=frozenset({Merge.MEMORY})))
    form = replace(form, cut=planned)
    parts = _Parts(
        flow=graph.name,
        origin=f"graph {graph_hash(graph)[:12]}",
        form=form,
        completion=emit_complete_pages(graph),
        decisions=decisions,
        most=bound,
        graph=graph,
        by_mass=by_mass,
    )
    names = parts.add_indexer(graph.output.nodes(), chosen if is_plain else None)
    parts.marks = names[chosen]
    if not is_plain:
        return parts.file(add_branches(parts, graph, names))
    parts.add_attention(chosen.type.shape[1])
    if wants_mass(graph):
        read = Weighed(parts.marks, chosen.type.shape[1], "log_sum_exp")
        parts.kernels.append(emit_weigh_pages(form, [read]))
    return parts.file((*lists_of(form), *outputs_of(form)))


def _plan_row(
    graph: Graph, form: RowForm, chosen: Node, wanted: Cut | None, *, by_mass: bool
) -> tuple[Cut, tuple[Decision, ...]]:
    """Plan which stages of a row share a kernel; a selection may not be one of them."""
    rounds, segment, apart = round_of(graph), 0, ""
    if form.target is not None:  # the pages of a tile of the kernel that scores
        scoring = PageRound(graph, form, rounds[chosen], rounds, _scratch_names(rounds))
        segment = page_work(scoring, kept=(chosen.inputs[0],)).tile
    if graph.states:
        apart = "values of the same pages are kept for the next step"
    elif by_mass:
        apart = "a share of all scores is asked for"
    sizes = {"kept": form.kept, "segment": segment}
    return plan_cut(form.target, chosen, rounds, **sizes, apart=apart, wanted=wanted)


def compile_dense(
    sizes: Geometry, target: Target, tiling: Tiling | None = None, cut: Cut | None = None
) -> KernelFile:
    """Compile dense attention: the loop of a flow's attention, without lists.

    A flow whose lists have every page gives the same output, bit for bit, under the same tiling.
    """
    form = RowForm(sizes, tiling or Tiling.for_target(sizes, target), target, cut or Cut())
    stages = attend_stages(form, chosen=None, is_listed=False)
    parts = FileParts(flow="dense", origin="its geometry", form=form, stages=stages)
    parts.kernels.append(emit_row_kernel("attend_row", form, stages))
    _add_merge(parts)
    return parts.file(outputs_of(form))


def _add_merge(parts: FileParts) -> None:
    """Add the merge of parts of rows, if they meet in memory."""
    if parts.form.has_parts:
        parts.kernels.append(emit_merge_parts(parts.form))
        parts.scratch += parts_of(parts.form)


@dataclass(slots=True, kw_only=True)
class _Parts(FileParts):
    """Parts of the file of a flow, added stage by stage."""

    graph: Graph
    by_mass: bool
    row_kernels: int = 0
    _open: list[StageFunction] = field(default_factory=list)  # of a kernel that is not complete

    def add_indexer(self, wanted: Iterable[Node], chosen: Node | None) -> dict[Node, str]:
        """Add page kernels and row kernels round by round; return the memory of all values.

        ``wanted`` values are there afterwards; ``chosen`` may be found where scores are.
        """
        rounds, wanted, scoring = round_of(self.graph), tuple(wanted), None
        names = _scratch_names(rounds)
        writes, fusions = writes_by_round(self.graph, rounds), self.form.cut.fusions
        for index in range(max([*rounds.values(), *writes]) + 1):
            roots = page_roots(rounds, wanted, index)
            of_round = PageRound(self.graph, self.form, index, rounds, names)
            if chosen is not None and index == rounds[chosen] and Fusion.SCORE_SELECT in fusions:
                scoring = of_round
                continue
            if roots or index in writes:
                work = page_work(of_round, stored=roots, writes=writes.get(index, ()))
                name = f"compute_pages_{index}"
                self.kernels.append(page_kernel(name, "Values per page", self.form, work))
            for node in roots:
                self._keep(node, names[node])
            for node in [item for item, at in rounds.items() if at == index and item.op.is_row_op]:
                if node is not chosen or Fusion.SELECT_LIST not in fusions:
                    self._add_row_op(node, names)
        if chosen is not None and (scoring is not None or Fusion.SELECT_LIST in fusions):
            self._open, scratch = select_stages(chosen, self.form, names, scoring)
            self.scratch += scratch
        return names

    def add_attention(self, columns: int) -> None:
        """Add lists of chosen pages, and attention over them."""
        fusions, form, marks = self.form.cut.fusions, self.form, self.marks
        (axis,) = (item.axis for item in self.scratch if item.name == marks)
        per_head = marks if columns > 1 else None
        if Fusion.SELECT_LIST not in fusions:
            self._close()
        if {Fusion.SELECT_LIST, Fusion.LIST_ATTEND} & fusions:
            self._open.append(list_stage(form, chosen=marks, columns=columns, axis=axis))
        else:
            listing = emit_list_pages(form, chosen=marks, columns=columns, axis=axis)
            self.kernels.append(listing)
        if Fusion.LIST_ATTEND not in fusions:
            self._close()
        if Fusion.LIST_ATTEND not in fusions and form.merge is Merge.MEMORY:
            self.kernels.append(emit_attend_pages(form, chosen=per_head))
        else:
            self._open += attend_stages(form, chosen=per_head)
        self._close()
        _add_merge(self)

    def _close(self) -> None:
        """Add one kernel of the stages that are open, named after what they do."""
        if not self._open:
            return
        names = [stage.name for stage in self._open]
        name = "_".join([name.partition("_")[0] for name in names] + ["row"])
        if {"score_pages", "attend_pages"} <= set(names):
            name = "decode_row"  # the whole of a step
        self.kernels.append(emit_row_kernel(name, self.form, self._open))
        self.stages += self._open
        self._open = []

    def _add_row_op(self, node: Node, names: Names) -> None:
        index = self.row_kernels
        if isinstance(node.op, selection.SelectionOp):
            by_digits = self.form.cut.selection is Selection.DIGITS
            kept = 0 if by_digits else kept_of(node, self.most, self.form.tiling)
            kernel, scratch = emit_select(
                self.form, node, index, names, by_mass=self.by_mass, kept=kept
            )
            self.kernels.append(kernel)
            self.scratch += scratch
        else:
            self.kernels.append(emit_row_op(self.form, node, index, names))
        self._keep(node, names[node])
        self.row_kernels += 1

    def _keep(self, node: Node, name: str) -> None:
        per_row = node.type.format is FORMAT.BATCHED
        axis = ScratchAxis.ROWS if per_row else ScratchAxis.PAGES
        dtype = node.type.dtype.computed
        kept = DType.INT8 if dtype is DType.BOOL else dtype
        self.scratch.append(Scratch(name, axis, node.type.shape, kept))


def _scratch_names(rounds: Mapping[Node, int]) -> dict[Node, str]:
    return {node: f"{name}_scratch" for node, name in name_values(rounds, Body()).items()}
