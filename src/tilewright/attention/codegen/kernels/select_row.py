"""The stages that choose the best pages of a row: from scores, or the best of them, to marks.

A *rank* is a score and a page in one whole number: higher scores come first, and of equal ones the
lower page. No two pages have one rank, so the lowest one that is in tells of every page.
"""

from dataclasses import replace

from tilewright.attention.codegen.kernels.compute import PageRound, loop_code, page_work
from tilewright.attention.codegen.kernels.merge import (
    down_code,
    level_code,
    levels_of,
    up_code,
)
from tilewright.attention.codegen.kernels.select import REACHED, count_code
from tilewright.attention.codegen.plan.target import Deal, Merge, Selection, padded
from tilewright.attention.codegen.plan.traffic import MARK_BYTES, NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body, Names
from tilewright.attention.codegen.source.file import Scratch, ScratchAxis, StageFunction
from tilewright.attention.codegen.source.helpers import LEAST_KEY, LEAST_RANK
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.tree import Source, code, joined, lines
from tilewright.attention.graph import DType, Node, Span
from tilewright.errors import InternalError


def _score_places(form: RowForm, body: Body, name: str, *, is_logical: bool) -> tuple[str, str]:
    """Return where the scores of a member lie: the first, and from it to the next.

    They lie by logical page, or those of each member together.
    """
    body.need(name, f"float32 [rows, {'' if is_logical else 'members, '}pages, 1, 1]")
    if not is_logical:
        return row_start(body, name, form.part), "1"
    factor, shift = form.page_steps
    return f"{row_start(body, name)} + {shift}", factor


def select_stages(
    chosen: Node, form: RowForm, names: Names, scoring: PageRound | None
) -> tuple[list[StageFunction], list[Scratch]]:
    """Score the pages of a row and select; return the memory of scores and marks, too.

    Without a round to score in, the scores are loaded that an earlier kernel left.
    """
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    scores, marks, most = chosen.inputs[0], names[chosen], form.target.pages
    axis = ScratchAxis.PAGES if form.part is None else ScratchAxis.MEMBER_PAGES
    kept = [Scratch(marks, axis, chosen.type.shape, DType.INT8)]
    if scoring is None:
        first, pages = _load_stage(form, names[scores], scores.op.name, padded(most))
    else:
        first, pages = _score_stage(scoring, scores, most)
        if form.cut.selection is Selection.SEGMENTS:
            kept.insert(0, Scratch(names[scores], axis, scores.type.shape, DType.FLOAT32))
    is_logical = scoring is None
    select = _select_stage(chosen, form, pages, names[scores], marks, is_logical=is_logical)
    return [first, select], kept


def _score_stage(page_round: PageRound, scores: Node, most: int) -> tuple[StageFunction, int]:
    """Score all pages of a member to one block; return how many pages that block has, too.

    In two levels: the best of them, each tile being a segment, and the scores in memory.
    """
    form, work = page_round.form, page_work(page_round, kept=(scores,))
    body, tile, value, traffic = work.body, work.tile, work.names[scores], work.traffic
    body.statements = code(f"num_full = num_tokens // {form.sizes.page_size}\n...", work.ahead)
    if form.cut.selection is Selection.SEGMENTS:
        span = span_code(Span.MIDDLE, body)
        places = _score_places(form, body, page_round.scratch[scores], is_logical=False)
        body.add(f"""
            {span}
            kept_scores = {places[0]}
            best = tl.full(({form.kept},), {LEAST_RANK}, tl.int64)
        """)
        after = lines(f"""
            own_page = start + tl.arange(0, {tile})
            is_there = own_page < {form.num_own}
            score = tl.reshape({value}, ({tile},))
            tl.store(kept_scores + own_page, score, mask=is_there)
            logical = {form.page_of("own_page")}
            ranks = ranks_of(score, logical, is_there & (logical >= first) & (logical < stop))
            best = best_of_both(best, tl.topk(ranks, {form.kept}), {form.kept})
        """)
        body.statements += loop_code(form, work, after)
        purpose = f"Scores, and the best {form.kept} candidates: each tile is a segment."
        traffic = replace(traffic, page_bytes=traffic.page_bytes + NUMBER_BYTES)
        return StageFunction("score_pages", purpose, body, traffic, result="best"), 0
    tiles = padded(-(-most // tile))
    turn = f"tl.where(turn == start // {tile}, tl.reshape({value}, (1, {tile})), scores)"
    source = f"""
        scores = tl.zeros(({tiles}, {tile}), tl.float32)
        turn = tl.arange(0, {tiles})[:, None]
        ...
        scores = tl.reshape(scores, ({tiles * tile},))
    """
    body.add(source, loop_code(form, work, f"scores = {turn}"))
    purpose = f"Scores of at most {tiles * tile} pages."
    return StageFunction("score_pages", purpose, body, traffic, result="scores"), tiles * tile


def _load_stage(form: RowForm, memory: str, scored: str, pages: int) -> tuple[StageFunction, int]:
    """Load the scores that an earlier kernel left as one block; in two levels, the best of them."""
    body = form.body()
    places = ", ".join(_score_places(form, body, memory, is_logical=True))
    traffic = Traffic(Stage.SELECTION, page_bytes=NUMBER_BYTES)
    if form.cut.selection is Selection.SEGMENTS:
        body.add(span_code(Span.MIDDLE, body))
        bounds = f"first, stop, {form.num_own}, {form.kept}, {form.tiling.row_tile}"
        body.add(f"best = best_in({places}, {', '.join(form.page_steps)}, {bounds})")
        purpose = f"The best {form.kept} candidates of a row."
        return StageFunction("load_scores", purpose, body, traffic, result="best"), 0
    body.add(f"""
        own = tl.arange(0, {pages})
        place = {row_start(body, memory)} + {form.page_of("own")}
        scores = tl.load(place, mask=own < {form.num_own}, other=0).to(tl.float32)
    """)
    purpose = f"Scores of at most {pages} pages: {scored}."
    return StageFunction("load_scores", purpose, body, traffic, result="scores"), pages


def _select_stage(
    node: Node, form: RowForm, pages: int, scores: str, chosen: str, *, is_logical: bool
) -> StageFunction:
    """Select from a block of scores of so many pages, or from the best of them: marks in memory."""
    body = form.body()
    given, page_bytes = {"scores": f"float32 [{pages}]"}, MARK_BYTES
    if form.cut.selection is Selection.SEGMENTS:
        given = {"best": f"int64 [{form.kept}]: ranks of the best candidates"}
        page_bytes += NUMBER_BYTES
        body.need(chosen, "int8 [rows, members, pages, 1, 1]")
        places = ", ".join(_score_places(form, body, scores, is_logical=is_logical))
        _mark_segments(node, form, body, places, chosen)
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


def _mark_segments(node: Node, form: RowForm, body: Body, scores: str, chosen: str) -> None:
    """Mark pages in memory from ``best`` of each member, and its scores in memory."""
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
