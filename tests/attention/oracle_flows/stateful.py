"""Rules that remember: running averages, reused selections, and accumulated attention mass."""

import numpy as np

from tests.attention.oracle_flows.centroid import block_sparse_attention
from tests.attention.oracle_flows.decode import (
    Array,
    Decode,
    Found,
    Moment,
    Score,
    attend,
    choose,
    reserved_and,
)


def grown(values: Array, size: int, initial: float = 0.0) -> Array:
    """Pages that came since the last step begin with ``initial``."""
    return np.concatenate([values, np.full(size - len(values), initial)])


def running_avg_block_sparse(decode: Decode) -> list[Found]:
    """r_t = 0.5 r_(t-1) + <mean query, c_P>, from 0 when a page is finished.

    A step that reads everything computes nothing. One that chooses keeps r_t of all pages but the
    last reserved ones.
    """
    found, kept = [], np.zeros(0)
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        running = 0.5 * grown(kept, moment.num_finished) + block_sparse_attention(moment)
        pages = choose(moment, running)
        if is_sparse(moment):
            kept = running[: advanced_pages(moment)]
        found.append(Found(running, pages, *attend(moment, pages)))
    return found


def is_sparse(moment: Moment) -> bool:
    """Whether the pages are more than the chosen and the reserved ones."""
    decode = moment.decode
    return moment.num_pages > decode.budget + decode.first_reserved + decode.last_reserved


def advanced_pages(moment: Moment) -> int:
    """Pages, from the first on, whose state a step that chooses writes."""
    return moment.num_pages - moment.decode.last_reserved


def reused_selection(decode: Decode, score: Score, every: int) -> list[Found]:
    """Chooses at steps 0, every, 2 every, ...; between them the pages that were read stay.

    That is, those that were finished then; the reserved ones are those of the step itself.
    """
    found: list[Found] = []
    chosen: list[int] = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        scores = score(moment)
        if step % every == 0:
            chosen = [page for page in choose(moment, scores) if page < moment.num_finished]
        pages = reserved_and(moment, chosen)
        found.append(Found(scores, pages, *attend(moment, pages)))
    return found


def lserve(decode: Decode, score: Score, *, every: int, window_pages: int) -> list[Found]:
    """KV heads with an odd number stream: sinks and a window. The others choose every few steps."""
    if decode.head % 2 == 0:
        return reused_selection(decode, score, every)
    found = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        recent = range(max(moment.num_pages - window_pages, 0), moment.num_pages)
        pages = reserved_and(moment, list(recent))
        found.append(Found(np.zeros(moment.num_finished), pages, *attend(moment, pages)))
    return found
