"""The kernels that choose pages of a row: from scores in memory to marks, from marks to lists."""

from dataclasses import dataclass

from tilewright.attention.codegen.expression.elementwise import number
from tilewright.attention.codegen.expression.memory import scratch_holds
from tilewright.attention.codegen.plan.target import Deal, Selection, Tiling, padded
from tilewright.attention.codegen.plan.traffic import (
    MARK_BYTES,
    NUMBER_BYTES,
    Stage,
    Traffic,
    select_traffic,
)
from tilewright.attention.codegen.source.builder import Body, Names, remark_of
from tilewright.attention.codegen.source.file import (
    Emitted,
    Grid,
    Scratch,
    ScratchAxis,
    StageFunction,
)
from tilewright.attention.codegen.source.row import RowForm, row_preamble, row_start, span_code
from tilewright.attention.codegen.source.tree import Source, code, joined, lines, without_unused
from tilewright.attention.graph import DType, Node, Span
from tilewright.attention.ops import selection

MOST_KEPT = 4096  # a block of so many ranks, twice, is all that a program has of earlier segments
REACHED = "tl.sum((best >= least.to(tl.int64) * 4294967296).to(tl.int32), 0)"


def emit_select(
    form: RowForm, node: Node, index: int, names: Names, *, by_mass: bool, kept: int
) -> tuple[Emitted, tuple[Scratch, ...]]:
    """Emit a selection from scores to marks in memory; return what else is kept in between, too.

    With ``by_mass`` plans may ask for a share of the softmax over scores. ``kept`` candidates of a
    segment are enough; if it is 0, nobody knows how many are, and digits are looked for.
    """
    body = Body()
    scores, chosen = names[node.inputs[0]], names[node]
    body.need(scores, scratch_holds(node.inputs[0]))
    body.need(chosen, scratch_holds(node))
    columns, weights = node.type.shape[1], f"{scores}_weights"
    body.add(row_preamble(body, form.sizes.page_size), remark=remark_of(node))
    body.add(f"""
        {span_code(Span.MIDDLE, body)}
        scores = {row_start(body, scores)} + tl.program_id(1)
        chosen = {row_start(body, chosen)} + tl.program_id(1)
    """)
    tile, way = form.tiling.row_tile, Selection.SEGMENTS if kept else Selection.DIGITS
    if kept:  # the best of each segment, then the best of those
        where = f"{columns}, 1, 0, first, stop, num_pages"
        body.add(f"""
            best = best_in(scores, {where}, {kept}, {tile})
            {count_code(node, body, REACHED)}
            last = last_rank_of(best, count, stop - first, {kept})
            mark_from(scores, {columns}, chosen, {where}, last, {tile})
        """)
    else:
        body.add(_DigitSearch(node, tile, columns, weights, body).search_code(by_mass))
    purpose = f"{node.op.name}: a program for each row and column of scores."
    traffic = select_traffic(way, columns)
    own = Scratch(weights, ScratchAxis.PAGES, node.type.shape, DType.FLOAT32)
    emitted = Emitted.of(f"select_{index}", purpose, body, Grid.ROW_COLUMNS, traffic, tile=columns)
    return emitted, (own,) if weights in body.arguments else ()


@dataclass(frozen=True, slots=True)
class _DigitSearch:
    """The last score that is in, or the last weight of a share, found digit by digit."""

    node: Node
    tile: int
    stride: int
    weights: str
    body: Body

    def search_code(self, by_mass: bool) -> Source:
        """Mark pages by their scores, or by weights where a share is asked for."""
        op, candidates = self.node.op, f"{self.stride}, first, stop"
        if isinstance(op, selection.TopP):
            return self._weigh(self._top_p(op))
        reached = f"count_at_least(scores, {candidates}, least, {self.tile})"
        counted = count_code(self.node, self.body, reached, key="ordered_key")
        counted = joined([counted, self._mark("scores")])
        is_planned = op == selection.TopK(per_head=self.stride > 1)
        if not by_mass or not (is_planned or isinstance(op, selection.ApproxTopK)):
            return counted
        self.body.need_all("by_mass", "mass", "at_least", "at_most")
        planned = lines(f"""
            keep_shares(scores, weights, {candidates}, {self.tile})
            total = sum_weights(weights, {candidates}, {self.tile})
            share = tl.load(mass + row)
            count = count_for_mass(weights, {candidates}, total * share, {self.tile})
            count = tl.where(share >= 1.0, stop - first, count)
        """)
        return lines(f"""
            if tl.load(by_mass + row) != 0:
                {self._weigh(planned)}
            else:
                {counted}
        """)

    def _top_p(self, op: selection.TopP) -> Source:
        stride, tile, ends = self.stride, self.tile, "tl.zeros((), tl.float64)"
        if op.span is Span.ALL:
            before = f"sum_weights(weights, {stride}, 0, first, {tile})"
            ends = f"{before} + sum_weights(weights, {stride}, stop, num_pages, {tile})"
        count = f"count_for_mass(weights, {stride}, first, stop, missing, {tile})"
        return lines(f"""
            keep_weights(scores, weights, {stride}, num_pages, {tile})
            given = {ends}
            total = given + sum_weights(weights, {stride}, first, stop, {tile})
            missing = total * {op.p!r} - given
            count = {"stop - first" if op.p >= 1.0 else count}
        """)

    def _weigh(self, counted: Source) -> Source:
        """Keep weights in memory, count by them, and mark."""
        self.body.need(self.weights, f"float32 [rows, pages, 1, {self.stride}]")
        return lines(f"""
            weights = {row_start(self.body, self.weights)} + tl.program_id(1)
            {counted}
            {bound_code(self.node)}
            {self._mark("weights")}
        """)

    def _mark(self, ranked: str) -> str:
        given = f"{ranked}, chosen, {self.stride}, first, stop, num_pages, count"
        return f"mark_best({given}, {self.tile})"


def kept_of(node: Node, most: int | None, tiling: Tiling) -> int:
    """Return how many candidates each segment keeps: a power of two that no count is above.

    ``most`` bounds the counts of plans. 0: nothing bounds them, or not enough for a segment that is
    read from memory.
    """
    bound: int | None = None  # of a share of all scores
    match node.op:
        case selection.TopK(k=int(high)) | selection.Threshold(max_pages=high):
            bound = high
        case selection.TopK() | selection.ApproxTopK():
            bound = most
    is_kept = bound is not None and bound <= min(MOST_KEPT, tiling.row_tile)
    return padded(max(bound or 0, 1)) if is_kept else 0


def count_code(
    node: Node,
    body: Body,
    reached: str = "tl.sum((keys >= least).to(tl.int32), 0)",
    key: str = "signed_key",
) -> Source:
    """Set ``count``, the candidates that are taken; ``reached`` counts those at a threshold."""
    match node.op:
        case selection.TopK(k=int(k)):
            return lines(f"count = tl.minimum({k}, stop - first)")
        case selection.Threshold(value=value):
            least = f"tl.full((), {number(value)}, tl.float32)"
        case _:
            body.need_all("at_least", "at_most", "threshold")
            least = "tl.load(threshold + row)"
    return lines(f"least = {key}({least}); count = {reached}\n{bound_code(node)}")


def bound_code(node: Node) -> Source:
    """Hold ``count`` between its bounds: those of the op, or those of the plan."""
    low, high = "tl.load(at_least + row)", "tl.load(at_most + row)"
    if isinstance(node.op, selection.Threshold | selection.TopP):
        low = str(node.op.min_pages)
        high = "stop - first" if node.op.max_pages is None else str(node.op.max_pages)
    return lines(f"""
        count = tl.minimum(tl.maximum(count, {low}), {high})
        count = tl.minimum(count, stop - first)
    """)


def emit_list_pages(form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis) -> Emitted:
    """Emit the lists of pages that some query head chose, in order, their lengths and tokens."""
    stage = list_stage(form, chosen=chosen, columns=columns, axis=axis)
    body = stage.body
    body.statements = without_unused([*code(form.preamble(body)), *body.statements])
    grid = Grid.ROWS if form.target is None else Grid.ROW_MEMBERS
    purpose = f"Chosen pages in logical order: a program for each {form.program}."
    return Emitted.of(f"list_pages{form.suffix}", purpose, body, grid, stage.traffic)


def list_stage(form: RowForm, *, chosen: str, columns: int, axis: ScratchAxis) -> StageFunction:
    """List the numbers of a member's own pages; ``axis`` says how the marks lie."""
    body, tile, size = form.body(), form.tiling.row_tile, form.sizes.page_size
    pages = "rows, pages" if axis is ScratchAxis.PAGES else "rows, members, pages"
    body.need(chosen, f"int8 [{pages}, 1, {columns}]")
    body.need_all("first_reserved", "last_reserved", "reads_all")
    lists, lengths, totals = need_lists(form, body)
    marks = row_start(body, chosen, form.part if axis is ScratchAxis.MEMBER_PAGES else None)
    listed = row_start(body, lists, form.part)
    load, mark = _marks(form, columns, axis)
    body.add(f"""
        everything = tl.load(reads_all + row)
        marks = {marks}
        listed = {listed}
        length = tl.zeros((), tl.int32)
        tokens = tl.zeros((), tl.int32)
        for start in range(0, {form.num_own}, {tile}):
            own = start + tl.arange(0, {tile})
            page = {form.page_of("own")}
            there = own < {form.num_own}
            {load}
            read = (({mark} | everything) != 0) | (page < first_reserved)
            read = (read | (page >= num_pages - last_reserved)) & there
            place = length + tl.cumsum(read.to(tl.int32), 0) - 1
            tl.store(listed + place, own, mask=read)
            length += tl.sum(read.to(tl.int32), 0)
            tokens += tl.sum(tl.where(read, tl.minimum(num_tokens - page * {size}, {size}), 0), 0)
        tl.store({row_start(body, lengths, form.part)}, length)
        tl.store({row_start(body, totals, form.part)}, tokens)
    """)
    purpose = "Chosen pages in logical order."
    traffic = Traffic(Stage.SELECTION, 2 * NUMBER_BYTES, columns * MARK_BYTES, NUMBER_BYTES)
    return StageFunction("list_pages", purpose, body, traffic)


def need_lists(form: RowForm, body: Body) -> tuple[str, str, str]:
    """Take the arguments that hold the lists, their lengths, and their tokens."""
    return (
        body.need(f"page_list{form.suffix}", "int32 [rows, members, pages]"),
        body.need(f"list_length{form.suffix}", "int32 [rows, members]"),
        body.need(f"list_tokens{form.suffix}", "int32 [rows, members]: of the listed pages"),
    )


def _marks(form: RowForm, columns: int, axis: ScratchAxis) -> tuple[str, str]:
    """Load marks; return an expression that is not 0 for a page with one in some column, too."""
    place = "own" if axis is ScratchAxis.MEMBER_PAGES else "page"
    members = form.members if axis is ScratchAxis.PAGES and form.deal is Deal.DEALT else 1
    width, mark = members * columns, "mark.to(tl.int32)"
    if width == 1:
        return f"mark = tl.load(marks + {place}, mask=there, other=0)", "mark"
    inside = f"there[:, None] & (column < {columns})"
    if members > 1:
        # neighbours in memory belong to all members in turn: those of one are picked from all
        place, mark = "own", f"tl.where(column // {columns} == member, {mark}, 0)"
        inside = f"(own[:, None] * {width} + column < num_pages * {columns}) & (column < {width})"
    return lines(f"""
        column = tl.arange(0, {padded(width)})[None, :]
        inside = {inside}
        mark = tl.load(marks + {place}[:, None] * {width} + column, mask=inside, other=0)
        mark = {mark}
    """), "tl.max(mark, 1)"
