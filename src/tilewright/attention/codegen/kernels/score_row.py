"""Stages that give the scores of a member's pages as one block, or the best of them.

A *rank* is a score and a page in one whole number: higher scores come first, and of equal ones the
lower page. No two pages have one rank, so the lowest one that is in tells of every page.
"""

from dataclasses import dataclass, replace

from tilewright.attention.codegen.kernels.compute import PageRound, loop_code, page_work
from tilewright.attention.codegen.plan.cut import Selection
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.codegen.plan.traffic import NUMBER_BYTES, Stage, Traffic
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.helpers import LEAST_RANK
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.stage import StageFunction
from tilewright.attention.codegen.source.tree import code, lines
from tilewright.attention.graph import Node, Span
from tilewright.errors import InternalError


@dataclass(frozen=True, slots=True)
class ScoreMemory:
    """Where the scores of a row lie: by logical page, or those of each member together."""

    name: str
    is_logical: bool

    def start(self, form: RowForm, body: Body) -> str:
        """Return where the score of the member's first page lies."""
        body.need(self.name, f"float32 [rows, {'' if self.is_logical else 'members, '}pages, 1, 1]")
        if not self.is_logical:
            return row_start(body, self.name, form.part)
        return f"{row_start(body, self.name)} + {form.page_steps[1]}"

    def places(self, form: RowForm, body: Body) -> str:
        """Return where the scores lie as two arguments: the first, and from it to the next."""
        return f"{self.start(form, body)}, {form.page_steps[0] if self.is_logical else '1'}"


def _most_pages(form: RowForm) -> int:
    if form.target is None:
        raise InternalError("scores", "no target", "a whole row", "report it")
    return form.target.pages


def score_stage(page_round: PageRound, scores: Node) -> tuple[StageFunction, int]:
    """Score all pages of a member to one block; return how many pages that block has, too.

    In two levels: the best of them, each tile being a segment, and the scores in memory.
    """
    form, most = page_round.form, _most_pages(page_round.form)
    work = page_work(page_round, kept=(scores,))
    body, tile, value, traffic = work.body, work.tile, work.names[scores], work.traffic
    body.statements = code(f"num_full = num_tokens // {form.page_size}\n...", work.ahead)
    if form.cut.selection is Selection.SEGMENTS:
        span = span_code(Span.MIDDLE, body)
        memory = ScoreMemory(page_round.scratch[scores], is_logical=False)
        body.add(f"""
            {span}
            kept_scores = {memory.start(form, body)}
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
    body.add(
        f"""
        scores = tl.zeros(({tiles}, {tile}), tl.float32)
        turn = tl.arange(0, {tiles})[:, None]
        ...
        scores = tl.reshape(scores, ({tiles * tile},))
        """,
        loop_code(form, work, f"scores = {turn}"),
    )
    purpose = f"Scores of at most {tiles * tile} pages."
    return StageFunction("score_pages", purpose, body, traffic, result="scores"), tiles * tile


def load_stage(node: Node, form: RowForm, *, scores: str) -> tuple[StageFunction, int]:
    """Load the scores that an earlier kernel left as one block; return its number of pages, too.

    In two levels: the best of them.
    """
    body, pages = form.body(), padded(_most_pages(form))
    body.need(scores, "float32 [rows, pages, 1, 1]")
    traffic = Traffic(Stage.SELECTION, page_bytes=NUMBER_BYTES)
    if form.cut.selection is Selection.SEGMENTS:
        memory = ScoreMemory(scores, is_logical=True).places(form, body)
        body.add(span_code(Span.MIDDLE, body))
        bounds = f"first, stop, {form.num_own}, {form.kept}, {form.tiling.row_tile}"
        body.add(f"best = best_in({memory}, {', '.join(form.page_steps)}, {bounds})")
        purpose = f"The best {form.kept} candidates of a row."
        return StageFunction("load_scores", purpose, body, traffic, result="best"), 0
    body.add(f"""
        own = tl.arange(0, {pages})
        place = {row_start(body, scores)} + {form.page_of("own")}
        scores = tl.load(place, mask=own < {form.num_own}, other=0).to(tl.float32)
    """)
    purpose = f"Scores of at most {pages} pages: {node.inputs[0].op.name}."
    return StageFunction("load_scores", purpose, body, traffic, result="scores"), pages
