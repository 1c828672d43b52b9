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
    best,
    choose,
    reserved_and,
)


def grown(values: Array, size: int, initial: float = 0.0) -> Array:
    """Pages that came since the last step begin with ``initial``."""
    return np.concatenate([values, np.full(size - len(values), initial)])


def running_avg_block_sparse(decode: Decode) -> list[Found]:
    """r_t = 0.5 r_(t-1) + <mean query, c_P>, from 0 when a page is finished."""
    found, running = [], np.zeros(0)
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        running = 0.5 * grown(running, moment.num_finished) + block_sparse_attention(moment)
        pages = choose(moment, running)
        found.append(Found(running, pages, *attend(moment, pages)))
    return found


def reused_selection(decode: Decode, score: Score, every: int) -> list[Found]:
    """Chooses at steps 0, every, 2 every, ...; between them the choice stays.

    Reserved pages are those of the step itself, so the last ones move on.
    """
    found: list[Found] = []
    chosen: list[int] = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        scores = score(moment)
        if step % every == 0:
            middle = moment.middle
            chosen = [middle.start + p for p in best(scores[middle], decode.budget)]
        pages = reserved_and(moment, chosen)
        found.append(Found(scores, pages, *attend(moment, pages)))
    return found


def streaming_pages(moment: Moment) -> list[int]:
    middle = moment.middle
    recent = range(max(middle.start, middle.stop - moment.decode.budget), middle.stop)
    return reserved_and(moment, list(recent))
