"""The attention of one token of one request: select, attend, merge, and keep what is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.attention.backends.reference.decode import attend_pages
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.kept import MASS, selection_name
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.page_list import (
    PageLists,
    every_page,
    list_pages,
)
from tilewright.attention.backends.reference.program import run_nodes
from tilewright.attention.backends.reference.softmax import (
    Partial,
    empty_partial,
    merge_partials,
    partial_of,
)
from tilewright.attention.backends.reference.view import RowSources, RowView
from tilewright.attention.graph import Branch, Estimate, EstimateOver, Graph, Node, Side
from tilewright.attention.ops.selection import ApproxTopK, SelectionOp, TopK
from tilewright.attention.planner import Reserved, RowBudget, RowPath

__all__ = ("RowPlan", "RowResult", "attend_row", "score_row", "select_row")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """What the plan of the step says about one request: a path and a budget for each KV head."""

    paths: tuple[RowPath, ...]
    budgets: tuple[RowBudget, ...]
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
    """Rows of skipped layers and short rows always; rows that fit if the plan alone decides."""
    if all(path in (RowPath.SKIPPED, RowPath.SHORT) for path in plan.paths):
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
        kept |= _state_written(view, values)
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
    kept = _state_written(view, values)
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
    if plan.want_mass and mass is not None:
        kept[MASS] = mass
    read = listed[0] if len(branches) == 1 else None
    lists = _union_of(view, selections) if read is None else read
    _count_selected(view, plan, lists)
    only = partial if len(branches) == 1 and branches[0].gate is None else None
    lse = None if only is None else only.log_sum_exp(xp)
    return RowResult(output, lse, lists, kept)


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
    writes = tuple(write.value for write in shared.graph.state_writes) if with_state else ()
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
    return run_nodes((*roots, *writes), frame, RowSources(view, inputs))


def _state_written(view: RowView, values: Mapping[Node, Array]) -> dict[str, Array]:
    """New state of the pages that have one: the finished, and the last if the flow asks for it."""
    shared = view.shared
    pages = view.num_pages if shared.graph.partial_pages else view.num_full
    types = {state.name: state.type for state in shared.graph.states}
    found = {}
    for write in shared.graph.state_writes:
        value_type = types[write.target]
        shape = (shared.num_kv_heads, view.num_pages, *value_type.shape)
        value = shared.namespace.xp.broadcast_to(values[write.value], shape)[:, :pages]
        found[write.target] = shared.namespace.stored(value, value_type.dtype)
        num_bytes = shared.num_kv_heads * pages * value_type.num_bytes
        shared.counters.num_bytes.state_written += num_bytes
    return found


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
    shape = (shared.num_kv_heads, view.num_pages, 1, node.type.shape[1])
    return xp.broadcast_to(chosen | ends, shape)


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
    stateful = bool(view.shared.graph.state_writes)
    middle = max(view.num_pages - plan.reserved.total, 0)
    scored = 0 if plan.reuse else middle
    scored = view.num_pages if stateful else scored
    for path, count in zip(plan.paths, lists.counts, strict=True):
        if path is RowPath.SPARSE:
            counters.sparse_rows += 1
        else:
            counters.count_dense(path.value)
        counters.pages_scored += scored
        counters.pages_selected += count
