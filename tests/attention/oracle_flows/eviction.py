"""Rules that forget for good: what was dropped once is never read again."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tests.attention.oracle_flows.decode import (
    Array,
    Decode,
    Found,
    Moment,
    Score,
    attend,
    best,
    reserved_and,
    softmax,
)
from tests.attention.oracle_flows.stateful import advanced_pages, grown, is_sparse


def prompt_mass(decode: Decode, queries: Array) -> Array:
    """What the last prompt tokens gave to the pages of the prompt: [G, pages].

    ``queries`` [W, G, D] belong to the last W tokens of the prompt; each sees itself and what was
    before. The sum over them.
    """
    block = decode.block_size
    pages = -(-decode.prompt_tokens // block)
    mass = np.zeros((queries.shape[1], pages))
    for position, query in enumerate(queries, start=decode.prompt_tokens - len(queries)):
        scale = decode.scale or query.shape[1] ** -0.5
        weights = softmax(scale * (query @ decode.keys[: position + 1].T))
        starts = np.arange(-(-(position + 1) // block)) * block
        mass[:, : len(starts)] += np.add.reduceat(weights, starts, axis=1)
    return mass


def pooled(votes: Array, reach: int) -> Array:
    """The largest vote within ``reach`` pages on both sides."""
    count = len(votes)
    near = [votes[max(page - reach, 0) : page + reach + 1].max() for page in range(count)]
    return np.array(near)


Update = Callable[[Array, Array], Array]


def evicting(decode: Decode, start: Array, update: Update) -> list[Found]:
    """Keeps the budget's best living pages of the middle; the others of the middle die.

    ``start`` [pages] are the values before the first step; ``update(values, last mass)`` gives
    the next ones from the mass that the last step gave, mean over heads. A page begins with 0, and
    keeps nothing from step to step while it is one of the last reserved ones. All steps choose.
    """
    found: list[Found] = []
    values, alive = start, np.ones(len(start), dtype=bool)
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        if found:
            last = found[-1].mass.mean(axis=0)
            values = update(grown(values, len(last)), last)
        values = grown(values, moment.num_pages)
        alive = np.concatenate([alive, np.ones(moment.num_pages - len(alive), dtype=bool)])
        pages = survivors(moment, values, alive)
        alive[moment.middle] = [page in pages for page in range(*moment.middle.indices(len(alive)))]
        found.append(Found(values[: moment.num_finished], pages, *attend(moment, pages)))
        assert is_sparse(moment)
        values = values[: advanced_pages(moment)].copy()
    return found


def survivors(moment: Moment, values: Array, alive: NDArray[np.bool_]) -> list[int]:
    middle = range(*moment.middle.indices(moment.num_pages))
    living = [page for page in middle if alive[page]]
    kept = best(np.array([values[page] for page in living]), moment.decode.budget)
    return reserved_and(moment, [living[position] for position in kept])


def h2o(decode: Decode, queries: Array) -> list[Found]:
    """A_P grows by the mass of every step; it begins with that of the observed prompt."""
    start = prompt_mass(decode, queries).mean(axis=0)
    return evicting(decode, start, lambda values, mass: values + mass)


def tova(decode: Decode, queries: Array) -> list[Found]:
    """Only the last step counts; the first one looks at the last token of the prompt."""
    start = prompt_mass(decode, queries[-1:]).mean(axis=0)
    return evicting(decode, start, lambda _, mass: mass)


def snapkv_pages(decode: Decode, queries: Array, *, keep: int, reach: int) -> list[int]:
    """Chosen once, at the first step: the pages of the middle with the most votes, pooled with
    their neighbours."""
    votes = pooled(prompt_mass(decode, queries).mean(axis=0), reach)
    middle = decode.moment(0).middle
    return [middle.start + position for position in best(votes[middle], keep)]


def snapkv(decode: Decode, queries: Array, *, keep: int, reach: int) -> list[Found]:
    """The chosen pages of the prompt, and all that came after it."""
    kept = snapkv_pages(decode, queries, keep=keep, reach=reach)
    found = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        later = range(decode.moment(0).middle.stop, moment.num_pages)
        pages = reserved_and(moment, [*kept, *later])
        found.append(Found(np.zeros(moment.num_finished), pages, *attend(moment, pages)))
    return found


def rocketkv(decode: Decode, queries: Array, *, keep: int, reach: int, score: Score) -> list[Found]:
    """First as SnapKV, for good; then at each step the best of what is left by ``score``."""
    kept = snapkv_pages(decode, queries, keep=keep, reach=reach)
    found = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        later = range(decode.moment(0).middle.stop, moment.num_pages)
        alive = np.isin(np.arange(moment.num_pages), [*kept, *later])
        scores = score(moment)
        pages = survivors(moment, np.append(scores, 0.0), alive)
        found.append(Found(scores, pages, *attend(moment, pages)))
    return found
