"""Choosing the best pages of a row in two levels: the best of each segment, then the best of those.

A *rank* is a score and a page in one whole number: higher scores come first, and of equal ones the
lower page. No two pages have one rank, so the lowest one that is in tells of every page.
"""

from dataclasses import dataclass

from tilewright.attention.codegen.kernels.select_block import count_code
from tilewright.attention.codegen.kernels.tree_merge import best_down_code, best_up_code
from tilewright.attention.codegen.plan.target import Tiling, padded
from tilewright.attention.codegen.source.builder import Body
from tilewright.attention.codegen.source.row import RowForm, row_start, span_code
from tilewright.attention.codegen.source.tree import If, Statement, code
from tilewright.attention.graph import Node, Span
from tilewright.attention.ops import selection

MOST_KEPT = 4096  # a block of so many ranks, twice, is all that a program has of earlier segments
LEAST_RANK = -9223372036854775807
REACHED = "tl.sum((best >= least.to(tl.int64) * 4294967296).to(tl.int32), 0)"

SEGMENT_HELPERS = f'''\
@triton.jit
def ranks_of(score, page, is_candidate):
    """Of pages: an int64 that orders by score, and equal scores by page, the first one highest."""
    rank = signed_key(score).to(tl.int64) * 4294967296 + (4294967295 - page.to(tl.int64))
    return tl.where(is_candidate, rank, {LEAST_RANK})


@triton.jit
def best_of_both(best, other, KEPT: tl.constexpr):
    """The KEPT highest of twice as many, in order."""
    return tl.topk(tl.reshape(tl.join(best, other), (2 * KEPT,)), KEPT)


@triton.jit
def best_in(
    scores, stride, factor, shift, first, stop, num_own, KEPT: tl.constexpr, TILE: tl.constexpr
):
    """The KEPT highest ranks of candidates first .. stop; a page is own * factor + shift."""
    best = tl.full((KEPT,), {LEAST_RANK}, tl.int64)
    for start in range(0, num_own, TILE):
        own = start + tl.arange(0, TILE)
        page = own * factor + shift
        there = own < num_own
        score = tl.load(scores + own * stride, mask=there, other=0).to(tl.float32)
        ranks = ranks_of(score, page, there & (page >= first) & (page < stop))
        best = best_of_both(best, tl.topk(ranks, KEPT), KEPT)
    return best


@triton.jit
def last_rank_of(best, count, num_candidates, KEPT: tl.constexpr):
    """The lowest rank that is in, as a block of one; below all if every candidate is in."""
    is_in = tl.arange(0, KEPT) < tl.broadcast_to(count, (KEPT,))
    last = tl.min(tl.where(is_in, best, 9223372036854775807), 0)
    return tl.broadcast_to(tl.where(count >= num_candidates, {LEAST_RANK}, last), (1,))


@triton.jit
def mark_from(
    scores, stride, marks, columns, factor, shift, first, stop, num_own, last, TILE: tl.constexpr
):
    """Mark candidates whose rank is ``last`` or higher, and all pages that are none."""
    for start in range(0, num_own, TILE):
        own = start + tl.arange(0, TILE)
        page = own * factor + shift
        there = own < num_own
        candidate = (page >= first) & (page < stop)
        score = tl.load(scores + own * stride, mask=there, other=0).to(tl.float32)
        best = ranks_of(score, page, candidate) >= last
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
        tl.store(marks + own * columns, mark, mask=there)
'''


def kept_of(node: Node, most: int | None, tiling: Tiling) -> int:
    """Return how many candidates each segment keeps: a power of two that no count is above.

    ``most`` bounds the counts of plans. 0: nothing bounds them, or not enough for a segment that is
    read from memory.
    """
    match node.op:
        case selection.TopK(k=int(k)):
            bound: int | None = k
        case selection.Threshold(max_pages=high):
            bound = high
        case selection.TopK() | selection.ApproxTopK():
            bound = most
        case _:
            bound = None  # a share of all scores
    if bound is None or bound > min(MOST_KEPT, tiling.row_tile):
        return 0
    return padded(max(bound, 1))


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

    def stride(self, form: RowForm) -> str:
        """Return the distance from a page of the member to its next."""
        return form.page_steps[0] if self.is_logical else "1"


def segment_start_code(form: RowForm, body: Body, memory: ScoreMemory) -> list[Statement]:
    """Set where scores go, and the best so far, ahead of a loop that scores."""
    return span_code(Span.MIDDLE, body) + code(f"""
        kept_scores = {memory.start(form, body)}
        best = tl.full(({form.kept},), {LEAST_RANK}, tl.int64)
    """)


def keep_code(form: RowForm, scores: str, tile: int) -> list[Statement]:
    """Keep the best of a tile that a turn has scored: the tile is a segment."""
    return code(f"""
        own_page = start + tl.arange(0, {tile})
        is_there = own_page < {form.num_own}
        score = tl.reshape({scores}, ({tile},))
        tl.store(kept_scores + own_page, score, mask=is_there)
        logical = {form.page_of("own_page")}
        ranks = ranks_of(score, logical, is_there & (logical >= first) & (logical < stop))
        best = best_of_both(best, tl.topk(ranks, {form.kept}), {form.kept})
    """)


def best_in_code(form: RowForm, body: Body, memory: ScoreMemory, tile: int) -> list[Statement]:
    """Find the best of scores that are in memory."""
    factor, shift = form.page_steps
    where = f"{memory.start(form, body)}, {memory.stride(form)}, {factor}, {shift}"
    best = f"best_in({where}, first, stop, {form.num_own}, {form.kept}, {tile})"
    return [*span_code(Span.MIDDLE, body), *code(f"best = {best}")]


def mark_segment_code(
    node: Node, form: RowForm, body: Body, *, memory: ScoreMemory, chosen: str, tile: int
) -> list[Statement]:
    """Mark pages in memory from ``best`` of each member, and its scores in memory."""
    body.need(chosen, "int8 [rows, members, pages, 1, 1]")
    factor, shift = form.page_steps
    scores = f"{memory.start(form, body)}, {memory.stride(form)}"
    marks, bounds = f"{row_start(body, chosen, form.part)}, 1", f"first, stop, {form.num_own}"
    lines = [*span_code(Span.MIDDLE, body), *_last_rank_code(node, form, body)]
    return lines + code(f"""
        tl.debug_barrier()  # other threads of the program have stored scores
        mark_from({scores}, {marks}, {factor}, {shift}, {bounds}, last, {tile})
    """)


def _last_rank_code(node: Node, form: RowForm, body: Body) -> list[Statement]:
    """Find ``last`` of the row from the ``best`` of each program that has a share of it."""
    last = code(f"last = last_rank_of(best, count, stop - first, {form.kept})")
    decide = count_code(node, body, REACHED) + last
    if form.members == 1:
        return decide
    return [
        *best_up_code(form.members, form.kept),
        *code("last = tl.zeros((1,), tl.int64)"),
        If.of("member == 0", decide),
        *best_down_code(form.members),
    ]
