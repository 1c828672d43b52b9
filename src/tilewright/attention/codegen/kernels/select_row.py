"""The stage that chooses the best pages of a row: from scores or ranks on the chip to marks."""

from tilewright.attention.codegen.kernels.score_row import ScoreMemory
from tilewright.attention.codegen.kernels.select import REACHED, count_code
from tilewright.attention.codegen.kernels.tree_merge import (
    down_code,
    level_code,
    levels_of,
    up_code,
)
from tilewright.attention.codegen.plan.cut import Selection
from tilewright.attention.codegen.plan.target import Deal, Merge, padded
from tilewright.attention.codegen.plan.traffic import MARK_BYTES, NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.helpers import LEAST_KEY
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.stage import StageFunction
from tilewright.attention.codegen.source.tree import Source, joined, lines
from tilewright.attention.graph import Node, Span


def select_stage(
    node: Node, form: RowForm, *, pages: int, scores: ScoreMemory, chosen: str
) -> StageFunction:
    """Select from a block of scores of so many pages, or from the best of them: marks in memory."""
    body = form.body()
    given, page_bytes = {"scores": f"float32 [{pages}]"}, MARK_BYTES
    if form.cut.selection is Selection.SEGMENTS:
        given = {"best": f"int64 [{form.kept}]: ranks of the best candidates"}
        page_bytes += NUMBER_BYTES
        _mark_segments(node, form, body, scores, chosen)
    else:
        body.add(span_code(Span.MIDDLE, body))
        body.need(chosen, "int8 [rows, members, pages, 1, 1]")
        marks = row_start(body, chosen, form.part)
        select = _select_block if form.merge is Merge.MEMORY else _select_over_queues
        select(node, form, body, pages, marks)
    purpose = f"{node.op.name}: marks of the pages that are chosen."
    traffic = Traffic(Stage.SELECTION, page_bytes=page_bytes)
    return StageFunction("select_pages", purpose, body, traffic, given)


def _select_block(node: Node, form: RowForm, body: Body, pages: int, marks: str) -> None:
    """Select from ``scores``, a block of so many of the member's pages."""
    body.add(f"""
        own = tl.arange(0, {pages})
        page = {form.page_of("own")}
        candidate = (page >= first) & (page < stop)
        keys = tl.where(candidate, signed_key(scores), {LEAST_KEY})
        {count_code(node, body)}
        best = best_of(keys, count, {pages})
        there = own < {form.num_own}
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
        tl.store({marks} + own, mark, mask=there)
    """)


def _select_over_queues(node: Node, form: RowForm, body: Body, pages: int, marks: str) -> None:
    """Mark the pages that all members together choose by the ``scores`` of each.

    All keys meet at member 0, which finds the last one that is in, and how many of its equals each
    member has.
    """
    seats = padded(form.members)
    equal, shares = "equal", f"tl.reshape(taken, ({seats}, {pages}))"
    if form.deal is Deal.DEALT:
        equal = f"tl.trans(tl.reshape(equal, ({seats}, {pages})))"
        shares = f"tl.trans(tl.reshape(taken, ({pages}, {seats})))"
    body.add(f"""
        own = tl.arange(0, {pages})
        page = {form.page_of("own")}
        candidate = (page >= first) & (page < stop) & (own < {form.num_own})
        own_keys = tl.where(candidate, signed_key(scores), {LEAST_KEY})
        keys = own_keys
        {_gather_code(form.members, pages)}
        last = tl.zeros((2, {seats}), tl.int32)
        if member == 0:
            {count_code(node, body)}
            limit = last_key_of(keys, count, {seats * pages})
            owed = count - tl.sum((keys > limit).to(tl.int32), 0)
            equal = (keys == limit).to(tl.int32)
            equal = tl.reshape({equal}, ({seats * pages},))  # by page
            taken = equal * (tl.cumsum(equal, 0) <= owed).to(tl.int32)
            shares = tl.sum({shares}, 1)
            side = tl.arange(0, 2)[:, None]
            last = tl.where(side == 0, limit, shares[None, :])
        {down_code(form.members, f"(2, {seats}), tl.int32")}
        side = tl.arange(0, 2)[:, None]
        seat = tl.arange(0, {seats})[None, :]
        limit = tl.sum(tl.sum(tl.where((side == 0) & (seat == 0), last, 0), 1), 0)
        share = tl.sum(tl.sum(tl.where((side == 1) & (seat == member), last, 0), 1), 0)
        equal = own_keys == limit
        best = (own_keys > limit) | (equal & (tl.cumsum(equal.to(tl.int32), 0) <= share))
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
        tl.store({marks} + own, mark, mask=own < {form.num_own})
    """)


def _gather_code(members: int, pages: int) -> Source:
    """Gather the keys of all members at member 0, those of a member together."""
    found = Source()
    for level in range(levels_of(members)):
        size, seat = pages << level, ""
        received = f'tl.recv("child_{level}", ({size},), tl.int32)'
        parent = f"keys = tl.cat(keys, {received})"
        meet = level_code(level, members, child='tl.send("parent", keys)', parent=parent)
        if members != 1 << levels_of(members):  # a seat that nobody has
            seat = lines(f"""
                if (member % {2 << level} == 0) & (member >= {members - (1 << level)}):
                    keys = tl.cat(keys, tl.full(({size},), {LEAST_KEY}, tl.int32))
            """)
        found = joined([found, meet, seat])
    return found


def _mark_segments(node: Node, form: RowForm, body: Body, memory: ScoreMemory, chosen: str) -> None:
    """Mark pages in memory from ``best`` of each member, and its scores in memory."""
    body.need(chosen, "int8 [rows, members, pages, 1, 1]")
    scores = memory.places(form, body)
    marks = row_start(body, chosen, form.part)
    where = f"{scores}, {marks}, 1, {', '.join(form.page_steps)}, first, stop, {form.num_own}"
    span = span_code(Span.MIDDLE, body)
    decide = lines(f"""
        {count_code(node, body, REACHED)}
        last = last_rank_of(best, count, stop - first, {form.kept})
    """)

    def join(level: int) -> str:
        received = f'tl.recv("child_{level}", ({form.kept},), tl.int64)'
        return f"best = best_of_both(best, {received}, {form.kept})"

    if form.members > 1:
        decide = lines(f"""
            {up_code(form.members, 'tl.send("parent", best)', join)}
            last = tl.zeros((1,), tl.int64)
            if member == 0:
                {decide}
            {down_code(form.members, "(1,), tl.int64")}
        """)
    body.add(f"""
        {span}
        {decide}
        tl.debug_barrier()  # other threads of the program have stored scores
        mark_from({where}, last, {form.tiling.row_tile})
    """)
