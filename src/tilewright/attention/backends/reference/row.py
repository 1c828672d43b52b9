"""The attention of one token of one request: select, attend, merge, and keep what is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.attention.backends.reference.attend import (
    Partial,
    attend_pages,
    empty_partial,
    merge_partials,
    partial_of,
)
from tilewright.attention.backends.reference.completion import advancing_writes, state_written
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.op import run_nodes
from tilewright.attention.backends.reference.op.frame import Frame
from tilewright.attention.backends.reference.pages import PageLists, every_page, list_pages
from tilewright.attention.backends.reference.shared import Shared
from tilewright.attention.backends.reference.store import MASS, selection_name
from tilewright.attention.backends.reference.view import RowSources, RowView
from tilewright.attention.graph import Branch, DType, Estimate, EstimateOver, Node, Side
from tilewright.attention.ops.selection import ApproxTopK, SelectionOp, TopK
from tilewright.attention.planner import Reserved, RowBudget, RowPath, StateAdvance


@dataclass(frozen=True, slots=True)
class RowResult:
    """Output [heads, query heads, value_dim], its log-sum-exp if it is one softmax, and pages."""

    output: Array
    log_sum_exp: Array | None
    read: PageLists
    kept: Mapping[str, Array]  # what the next step finds


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One token of one request in one layer, with what the plan of the step says about it."""

    view: RowView
    inputs: dict[str, Array]  # those of the flow, for this token
    paths: tuple[RowPath, ...]  # of each KV head, as those below
    budgets: tuple[RowBudget, ...]
    reads_whole: tuple[bool, ...]  # the plan makes the head dense, whatever the flow selects
    state_pages: tuple[int, ...]  # pages, from the first on, whose state the Saves of a head write
    reserved: Reserved
    step: int
    want_mass: bool
    reuse: bool  # the last selection serves this step too

    @property
    def shared(self) -> Shared:
        return self.view.shared

    @property
    def xp(self) -> Any:
        return self.view.shared.namespace.xp

    @property
    def branches(self) -> tuple[Branch, ...]:
        return self.view.shared.graph.output.branches

    def attend(self) -> RowResult:
        """Select and attend. State and masses are returned, so that they commit together."""
        with self.shared.namespace.quiet():
            return self._attend_dense() if self._is_dense() else self._attend_selected()

    def select(self) -> PageLists:
        """Return the pages that `attend` would read; nothing is kept and nothing is read."""
        if self._is_dense():
            return every_page(self.xp, self.shared.num_kv_heads, self.view.num_pages)
        roots = [branch.selection for branch in self.branches if branch.selection is not None]
        values = self._run([] if self.reuse else roots, with_state=False)
        return self._union_of([self._selection(values, i) for i in range(len(self.branches))])

    def scores(self) -> Array | None:
        """Return what the selection ranks pages by: [heads, pages, 1, query heads or 1].

        None where it does not choose by one score a page: several branches, or a combined choice.
        """
        node = self.branches[0].selection
        if len(self.branches) > 1 or node is None or not isinstance(node.op, SelectionOp):
            return None
        (scores,) = node.inputs
        with self.shared.namespace.quiet():
            return self._run([scores], with_state=False)[scores]

    def _is_dense(self) -> bool:
        """Return whether all KV heads read everything.

        The plan says so, or a budget for every page makes the output plain dense attention.
        """
        if all(self.reads_whole):
            return True
        (branch, *others) = self.branches
        fits = all(path is RowPath.FITS for path in self.paths)
        if not fits or others or branch.selection is None or branch.gate is not None:
            return False
        op = branch.selection.op
        planned = isinstance(op, ApproxTopK) or (isinstance(op, TopK) and op.k is None)
        estimate = branch.estimate
        return planned and (estimate is None or estimate.over == EstimateOver.UNSELECTED)

    def _attend_dense(self) -> RowResult:
        view, xp = self.view, self.xp
        self.shared.counters.dense_rows.update(path.value for path in self.paths)
        lists = every_page(xp, self.shared.num_kv_heads, view.num_pages)
        follows = self.paths[0] is not RowPath.SKIPPED  # the flow lives in this layer
        partial, mass = self._read(lists, want_mass=self.want_mass and follows)
        self._count_read(lists)
        kept: dict[str, Array] = {}
        if follows:
            kept |= state_written(view, self._run([]), self.state_pages)
        if mass is not None:
            kept[MASS] = mass
        return RowResult(partial.output(xp), partial.log_sum_exp(xp), lists, kept)

    def _attend_selected(self) -> RowResult:
        branches, xp = self.branches, self.xp
        values = self._run(
            node
            for branch in branches
            for node in branch.parts().values()
            if not (self.reuse and node is branch.selection)
        )
        kept = state_written(self.view, values, self.state_pages)
        output, mass, partial, listed = None, None, None, []
        selections = [self._selection(values, index) for index in range(len(branches))]
        for index, (branch, selected) in enumerate(zip(branches, selections, strict=True)):
            partial, branch_mass, lists = self._attend_branch(branch, values, selected)
            listed.append(lists)
            part = partial.output(xp)
            if branch.gate is not None:
                part = part * values[branch.gate][:, 0]
            output = part if output is None else output + part
            if branch_mass is not None:
                mass = branch_mass if mass is None else mass + branch_mass
            if self.shared.spec.update_interval > 1 and selected is not None:  # it serves again
                kept[selection_name(index)] = selected
        only = partial if len(branches) == 1 and branches[0].gate is None else None
        lse = None if only is None else only.log_sum_exp(xp)
        if any(self.reads_whole) and (only is None or branches[0].estimate is not None):
            output, lse, mass = self._with_whole_heads(output, lse, mass)
        if self.want_mass and mass is not None:
            kept[MASS] = mass
        lists = (listed[0] if len(branches) == 1 else None) or self._union_of(selections)
        self._count_selected(lists)
        return RowResult(output, lse, lists, kept)

    def _read(self, lists: PageLists, *, want_mass: bool) -> tuple[Partial, Array | None]:
        """Attend to listed pages; masses are [heads, pages, 1, query heads]."""
        query = self.inputs["q"][:, 0]
        reader, scale = self.view.reader, self.shared.scale
        partial, mass = attend_pages(reader, query, lists, scale, want_mass=want_mass)
        if mass is None:
            return partial, None
        shape = (mass.shape[0], self.view.num_pages, 1, mass.shape[2])
        by_page = self.xp.zeros(shape, dtype=self.xp.float32)
        heads, entries = self.xp.nonzero(lists.valid)
        by_page[heads, lists.pages[heads, entries], 0] = mass[heads, entries]
        return partial, by_page

    def _with_whole_heads(
        self, output: Array, lse: Array | None, mass: Array | None
    ) -> tuple[Array, Array | None, Array | None]:
        """Replace output, log-sum-exp and mass of KV heads that the plan makes dense.

        Other heads of the request select, and the flow has gates, estimates or several branches.
        """
        xp = self.xp
        lists = every_page(xp, self.shared.num_kv_heads, self.view.num_pages)
        dense, dense_mass = self._read(lists, want_mass=self.want_mass)
        whole = xp.reshape(xp.asarray(self.reads_whole), (-1, 1, 1))
        output = xp.where(whole, dense.output(xp), output)
        if lse is not None:
            lse = xp.where(whole[:, :, 0], dense.log_sum_exp(xp), lse)
        if dense_mass is not None and mass is not None:
            mass = xp.where(whole[..., None], dense_mass, mass)
        return output, lse, mass

    def _run(self, roots: Iterable[Node], *, with_state: bool = True) -> dict[Node, Array]:
        """Return the wanted nodes, and what the state needs."""
        shared = self.shared
        writes = advancing_writes(shared.graph, self.state_pages) if with_state else ()
        wanted = (*roots, *(write.value for write in writes))
        if not wanted:
            return {}
        frame = Frame(
            namespace=shared.namespace,
            side=Side.INDEXER,
            geometry=shared.graph.geometry,
            num_heads=shared.num_kv_heads,
            pages=self.view.pages,
            layer=self.view.layer,
            step=self.step,
            reserved=self.reserved,
            budgets=self.budgets,
            counters=shared.counters,
        )
        return run_nodes(wanted, frame, RowSources(self.view, self.inputs), shared.evaluators)

    def _selection(self, values: Mapping[Node, Array], index: int) -> Array | None:
        """Return bools [heads, pages, 1, query heads or 1] of a branch, reserved pages included."""
        xp, num_pages = self.xp, self.view.num_pages
        node = self.branches[index].selection
        if node is None:
            return None
        if self.reuse:
            self.shared.counters.reused_selections += 1
            chosen = self.view.kept(selection_name(index), node.type.shape[1], DType.BOOL)
        else:
            chosen = values[node]
        page = xp.reshape(xp.arange(num_pages), (1, -1, 1, 1))
        ends = (page < self.reserved.first) | (page >= num_pages - self.reserved.last)
        whole = xp.reshape(xp.asarray(self.reads_whole), (-1, 1, 1, 1))
        shape = (self.shared.num_kv_heads, num_pages, 1, node.type.shape[1])
        return xp.broadcast_to(chosen | ends | whole, shape)

    def _attend_branch(
        self, branch: Branch, values: Mapping[Node, Array], selected: Array | None
    ) -> tuple[Partial, Array | None, PageLists | None]:
        """Attend exactly to what is selected, and merge the estimate of the rest."""
        xp, queries = self.xp, self.shared.graph.geometry.query_heads
        partial = empty_partial(xp, self.shared.num_kv_heads, queries, self.view.reader.value_dim)
        mass, lists = None, None
        if selected is not None:
            lists = list_pages(xp, selected)
            partial, mass = self._read(lists, want_mass=self.want_mass)
            self._count_read(lists)
        if branch.estimate is not None:
            estimated = self._estimated(branch.estimate, values, selected)
            partial = merge_partials(xp, partial, estimated)
        return partial, mass, lists

    def _estimated(
        self, estimate: Estimate, values: Mapping[Node, Array], selected: Array | None
    ) -> Partial:
        """Attend to pages by their summaries: logits [S, r, H], values [S, r, value_dim]."""
        xp, geometry = self.xp, self.shared.graph.geometry
        heads, pages = self.shared.num_kv_heads, self.view.num_pages
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

    def _union_of(self, selections: Iterable[Array | None]) -> PageLists:
        """Return every page that some branch reads."""
        xp = self.xp
        read = xp.zeros((self.shared.num_kv_heads, self.view.num_pages, 1, 1), dtype=xp.bool)
        for selected in selections:
            if selected is not None:
                read = read | xp.any(selected, axis=-1, keepdims=True)
        return list_pages(xp, read)

    def _count_read(self, lists: PageLists) -> None:
        xp, store, num_full = self.xp, self.shared.store, self.view.num_full
        pages, staged = sum(lists.counts), 0
        names = self.shared.graph.geometry.reserved_fields
        if num_full < self.view.num_pages and any(name in store.codes for name in names):
            staged = int(xp.sum(xp.astype(lists.valid & (lists.pages >= num_full), xp.int64)))
        counters = self.shared.counters
        counters.pages_read += pages
        counters.num_bytes.kv_read += (pages - staged) * store.block_bytes(names)
        counters.num_bytes.kv_read += staged * store.block_bytes(names, is_staged=True)

    def _count_selected(self, lists: PageLists) -> None:
        counters = self.shared.counters
        for path, advanced, count in zip(self.paths, self.state_pages, lists.counts, strict=True):
            if path is RowPath.SPARSE:
                counters.sparse_rows += 1
            else:
                counters.dense_rows[path.value] += 1
            counters.pages_scored += self._num_scored(advanced)
            counters.pages_selected += count

    def _num_scored(self, advanced: int) -> int:
        """Return the pages of a KV head that the flow's program covers in this step.

        Where state advances as in Vortex, those are the ``advanced`` pages: none in a head that
        the plan makes dense while others of its request select.
        """
        graph = self.shared.graph
        if graph.has_saves and self.shared.spec.plan.state_advance is StateAdvance.VORTEX:
            return advanced
        if graph.states:
            return self.view.num_pages
        return 0 if self.reuse else max(self.view.num_pages - self.reserved.total, 0)
