"""The attention of one token of one request: select, attend, merge, and keep what is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.backends.reference.attend import (
    Partial,
    attend_pages,
    empty_partial,
    merge_partials,
    partial_of,
)
from tilewright.attention.backends.reference.completion import advanced_values, state_written
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op import run_nodes
from tilewright.attention.backends.reference.op.frame import Frame
from tilewright.attention.backends.reference.page_list import (
    PageLists,
    every_page,
    list_pages,
)
from tilewright.attention.backends.reference.store import MASS, selection_name
from tilewright.attention.backends.reference.view import RowSources, RowView
from tilewright.attention.graph import Branch, Estimate, EstimateOver, Graph, Node, Side
from tilewright.attention.ops.selection import ApproxTopK, SelectionOp, TopK
from tilewright.attention.planner import Reserved, RowBudget, RowPath, StateAdvance


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """What the plan of the step says about one request: a path and a budget for each KV head."""

    paths: tuple[RowPath, ...]
    budgets: tuple[RowBudget, ...]
    reads_whole: tuple[bool, ...]  # the plan makes the head dense, whatever the flow selects
    state_pages: tuple[int, ...]  # pages, from the first on, whose state the Saves of a head write
    reserved: Reserved
    step: int
    scale: float
    want_mass: bool
    reuse: bool  # the last selection serves this step too
    keep_selections: bool  # a later step may ask for them


@dataclass(frozen=True, slots=True)
class RowResult:
    """Output [heads, query heads, value_dim], its log-sum-exp if it is one softmax, and pages."""

    output: Array
    log_sum_exp: Array | None
    read: PageLists
    kept: Mapping[str, Array]  # what the next step finds


def attend_row(view: RowView, inputs: dict[str, Array], plan: RowPlan) -> RowResult:
    """One token. State and masses are returned, not written, so that they commit together."""
    graph = view.shared.graph
    with view.shared.namespace.quiet():
        if _is_dense(graph, plan):
            return _attend_dense(view, inputs, plan)
        return _attend_selected(view, inputs, plan)


def select_row(view: RowView, inputs: dict[str, Array], plan: RowPlan) -> PageLists:
    """The pages that `attend_row` would read; nothing is kept and nothing is read."""
    graph, xp = view.shared.graph, view.shared.namespace.xp
    if _is_dense(graph, plan):
        return every_page(xp, view.shared.num_kv_heads, view.num_pages)
    branches = graph.output.branches
    roots = () if plan.reuse else tuple(b.selection for b in branches if b.selection is not None)
    values = _run(view, inputs, plan, roots, with_state=False)
    return _union_of(view, [_selection(view, plan, values, i) for i in range(len(branches))])


def score_row(view: RowView, inputs: dict[str, Array], plan: RowPlan) -> Array | None:
    """What the selection of a flow ranks pages by: [heads, pages, 1, query heads or 1].

    None where it does not choose by one score a page: several branches, or a combined choice.
    """
    branches = view.shared.graph.output.branches
    node = branches[0].selection
    if len(branches) > 1 or node is None or not isinstance(node.op, SelectionOp):
        return None
    (scores,) = node.inputs
    with view.shared.namespace.quiet():
        return _run(view, inputs, plan, (scores,), with_state=False)[scores]


def _is_dense(graph: Graph, plan: RowPlan) -> bool:
    """Return whether all KV heads read everything: by the plan, or by a budget for every page."""
    if all(plan.reads_whole):
        return True
    return all(path is RowPath.FITS for path in plan.paths) and _is_plain_top_k(graph)


def _is_plain_top_k(graph: Graph) -> bool:
    """Whether a budget for every page makes the output plain dense attention."""
    if len(graph.output.branches) != 1:
        return False
    (branch,) = graph.output.branches
    if branch.selection is None or branch.gate is not None:
        return False
    op = branch.selection.op
    planned = isinstance(op, ApproxTopK) or (isinstance(op, TopK) and op.k is None)
    estimate = branch.estimate
    return planned and (estimate is None or estimate.over == EstimateOver.UNSELECTED)


def _attend_dense(view: RowView, inputs: dict[str, Array], plan: RowPlan) -> RowResult:
    shared = view.shared
    xp = shared.namespace.xp
    for path in plan.paths:
        shared.counters.count_dense(path.value)
    lists = every_page(xp, shared.num_kv_heads, view.num_pages)
    query = inputs["q"][:, 0]
    follows = plan.paths[0] is not RowPath.SKIPPED  # the flow lives in this layer
    want_mass = plan.want_mass and follows
    partial, mass = attend_pages(view.reader, query, lists, plan.scale, want_mass=want_mass)
    _count_read(view, lists)
    kept: dict[str, Array] = {}
    if follows:
        values = _run(view, inputs, plan, ())
        kept |= state_written(view, values, plan.state_pages)
    if mass is not None:
        kept[MASS] = _by_page(view, lists, mass)
    return RowResult(partial.output(xp), partial.log_sum_exp(xp), lists, kept)


def _attend_selected(view: RowView, inputs: dict[str, Array], plan: RowPlan) -> RowResult:
    shared = view.shared
    xp, branches = shared.namespace.xp, shared.graph.output.branches
    roots = [
        node
        for branch in branches
        for node in branch.nodes()
        if not (plan.reuse and node is branch.selection)
    ]
    values = _run(view, inputs, plan, tuple(roots))
    kept = state_written(view, values, plan.state_pages)
    output, mass, partial, listed = None, None, None, []
    selections = [_selection(view, plan, values, index) for index in range(len(branches))]
    for index, branch in enumerate(branches):
        selected = selections[index]
        partial, branch_mass, lists = _attend_branch(view, inputs, plan, branch, values, selected)
        listed.append(lists)
        part = partial.output(xp)
        if branch.gate is not None:
            part = part * values[branch.gate][:, 0]
        output = part if output is None else output + part
        if branch_mass is not None:
            mass = branch_mass if mass is None else mass + branch_mass
        if plan.keep_selections and selected is not None:
            kept[selection_name(index)] = selected
    only = partial if len(branches) == 1 and branches[0].gate is None else None
    lse = None if only is None else only.log_sum_exp(xp)
    if any(plan.reads_whole) and not _is_one_selection(shared.graph):
        output, lse, mass = _with_whole_heads(view, inputs, plan, (output, lse, mass))
    if plan.want_mass and mass is not None:
        kept[MASS] = mass
    read = listed[0] if len(branches) == 1 else None
    lists = _union_of(view, selections) if read is None else read
    _count_selected(view, plan, lists)
    return RowResult(output, lse, lists, kept)


def _is_one_selection(graph: Graph) -> bool:
    """Return whether the output is one softmax over selected pages and nothing else."""
    (first, *others) = graph.output.branches
    return not others and first.gate is None and first.estimate is None


def _with_whole_heads(
    view: RowView,
    inputs: dict[str, Array],
    plan: RowPlan,
    found: tuple[Array, Array | None, Array | None],
) -> tuple[Array, Array | None, Array | None]:
    """Replace output, log-sum-exp and mass of KV heads that the plan makes dense.

    Other heads of the request select, and the flow has gates, estimates or several branches.
    """
    xp, num_heads = view.shared.namespace.xp, view.shared.num_kv_heads
    lists = every_page(xp, num_heads, view.num_pages)
    dense, mass = attend_pages(
        view.reader, inputs["q"][:, 0], lists, plan.scale, want_mass=plan.want_mass
    )
    whole = xp.reshape(xp.asarray(plan.reads_whole), (-1, 1, 1))
    output, lse, selected_mass = found
    output = xp.where(whole, dense.output(xp), output)
    if lse is not None:
        lse = xp.where(whole[:, :, 0], dense.log_sum_exp(xp), lse)
    if mass is not None and selected_mass is not None:
        selected_mass = xp.where(whole[..., None], _by_page(view, lists, mass), selected_mass)
    return output, lse, selected_mass


def _run(
    view: RowView,
    inputs: dict[str, Array],
    plan: RowPlan,
    roots: tuple[Node, ...],
    *,
    with_state: bool = True,
) -> dict[Node, Array]:
    """The wanted nodes, and what the state needs."""
    shared = view.shared
    writes = advanced_values(shared.graph, plan.state_pages) if with_state else ()
    if not roots and not writes:
        return {}
    frame = Frame(
        namespace=shared.namespace,
        side=Side.INDEXER,
        geometry=shared.graph.geometry,
        num_heads=shared.num_kv_heads,
        pages=view.pages,
        layer=view.layer,
        step=plan.step,
        reserved=plan.reserved,
        budgets=plan.budgets,
        counters=shared.counters,
    )
    return run_nodes((*roots, *writes), frame, RowSources(view, inputs), shared.evaluators)


def _selection(
    view: RowView, plan: RowPlan, values: Mapping[Node, Array], index: int
) -> Array | None:
    """Bools [heads, pages, 1, query heads or 1] of one branch, reserved pages included."""
    shared = view.shared
    xp = shared.namespace.xp
    node = shared.graph.output.branches[index].selection
    if node is None:
        return None
    if plan.reuse:
        shared.counters.reused_selections += 1
        chosen = view.selection(selection_name(index), node.type.shape[1])
    else:
        chosen = values[node]
    page = xp.reshape(xp.arange(view.num_pages), (1, -1, 1, 1))
    ends = (page < plan.reserved.first) | (page >= view.num_pages - plan.reserved.last)
    whole = xp.reshape(xp.asarray(plan.reads_whole), (-1, 1, 1, 1))
    shape = (shared.num_kv_heads, view.num_pages, 1, node.type.shape[1])
    return xp.broadcast_to(chosen | ends | whole, shape)


def _attend_branch(
    view: RowView,
    inputs: dict[str, Array],
    plan: RowPlan,
    branch: Branch,
    values: Mapping[Node, Array],
    selected: Array | None,
) -> tuple[Partial, Array | None, PageLists | None]:
    """Exact attention over what is selected, merged with the estimate of the rest."""
    xp = view.shared.namespace.xp
    heads, queries = view.shared.num_kv_heads, view.shared.graph.geometry.query_heads
    partial, mass, lists = empty_partial(xp, heads, queries, view.reader.value_dim), None, None
    if selected is not None:
        lists = list_pages(xp, selected)
        partial, of_listed = attend_pages(
            view.reader, inputs["q"][:, 0], lists, plan.scale, want_mass=plan.want_mass
        )
        _count_read(view, lists)
        mass = None if of_listed is None else _by_page(view, lists, of_listed)
    if branch.estimate is not None:
        estimated = _estimated(view, branch.estimate, values, selected)
        partial = merge_partials(xp, partial, estimated)
    return partial, mass, lists


def _estimated(
    view: RowView, estimate: Estimate, values: Mapping[Node, Array], selected: Array | None
) -> Partial:
    """Pages by their summaries: logits [S, r, H], values [S, r, value_dim]."""
    shared = view.shared
    xp = shared.namespace.xp
    geometry = shared.graph.geometry
    heads, pages = shared.num_kv_heads, view.num_pages
    logits, rows = values[estimate.logits], values[estimate.values]
    entries = logits.shape[2]
    logits = xp.broadcast_to(logits, (heads, pages, entries, geometry.query_heads))
    rows = xp.broadcast_to(rows, (heads, pages, entries, geometry.value_dim))
    if estimate.over == EstimateOver.UNSELECTED and selected is not None:
        logits = xp.where(selected, xp.full_like(logits, -xp.inf), logits)
        everyone = xp.all(selected, axis=-1, keepdims=True)
        rows = xp.where(everyone, xp.zeros_like(rows), rows)
    logits = xp.matrix_transpose(xp.reshape(logits, (heads, pages * entries, -1)))
    partial, _ = partial_of(xp, logits, xp.reshape(rows, (heads, pages * entries, -1)))
    return partial


def _by_page(view: RowView, lists: PageLists, mass: Array) -> Array:
    """Masses of listed pages [heads, n, query heads] at their logical place [heads, S, 1, ...]."""
    xp = view.shared.namespace.xp
    found = xp.zeros((mass.shape[0], view.num_pages, 1, mass.shape[2]), dtype=xp.float32)
    heads, entries = xp.nonzero(lists.valid)
    found[heads, lists.pages[heads, entries], 0] = mass[heads, entries]
    return found


def _union_of(view: RowView, selections: list[Array | None]) -> PageLists:
    """Every page that some branch reads."""
    xp = view.shared.namespace.xp
    shape = (view.shared.num_kv_heads, view.num_pages, 1, 1)
    read = xp.zeros(shape, dtype=xp.bool)
    for selected in selections:
        if selected is not None:
            read = read | xp.any(selected, axis=-1, keepdims=True)
    return list_pages(xp, read)


def _count_read(view: RowView, lists: PageLists) -> None:
    shared = view.shared
    pages = sum(lists.counts)
    shared.counters.pages_read += pages
    names = shared.graph.geometry.reserved_fields
    staged = 0
    if view.num_full < view.num_pages and any(map(shared.store.codes, names)):
        xp = shared.namespace.xp
        staged = int(xp.sum(xp.astype(lists.valid & (lists.pages >= view.num_full), xp.int64)))
    num_bytes = (pages - staged) * shared.store.block_bytes(names)
    num_bytes += staged * shared.store.block_bytes(names, is_staged=True)
    shared.counters.num_bytes.kv_read += num_bytes


def _count_selected(view: RowView, plan: RowPlan, lists: PageLists) -> None:
    counters = view.shared.counters
    for path, advanced, count in zip(plan.paths, plan.state_pages, lists.counts, strict=True):
        if path is RowPath.SPARSE:
            counters.sparse_rows += 1
        else:
            counters.count_dense(path.value)
        counters.pages_scored += _num_scored(view, plan, advanced)
        counters.pages_selected += count


def _num_scored(view: RowView, plan: RowPlan, advanced: int) -> int:
    """Return the pages of a KV head that the flow's program covers in this step.

    Where state advances as in Vortex, those are the ``advanced`` pages: none in a head that the
    plan makes dense while others of its request select.
    """
    graph, plan_spec = view.shared.graph, view.shared.spec.plan
    if graph.has_saves and plan_spec.state_advance is StateAdvance.VORTEX:
        return advanced
    if graph.has_state:
        return view.num_pages
    return 0 if plan.reuse else max(view.num_pages - plan.reserved.total, 0)
