"""A decode run of one KV head on paper: what a rule sees at each step, and what follows from it.

Nothing here knows ops, graphs or pages in memory: a sequence is an array of keys, and a page is a
slice of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Decode:
    """Keys [T, D], values [T, Dv] and the query of each step [N, G, D].

    Step t sees the first ``prompt_tokens + t + 1`` tokens: the prompt, what was decoded, and its
    own. ``prompt_queries`` [W, G, D] belong to the last tokens of the prompt.
    """

    keys: Array
    values: Array
    queries: Array
    prompt_tokens: int
    block_size: int
    budget: int  # pages to choose, reserved ones not counted
    first_reserved: int = 1
    last_reserved: int = 1
    scale: float = 0.0  # 0 stands for 1 / sqrt(D)
    head: int = 0

    def moment(self, step: int) -> "Moment":
        num_tokens = self.prompt_tokens + step + 1
        return Moment(
            q=self.queries[step],
            keys=self.keys[:num_tokens],
            values=self.values[:num_tokens],
            step=step,
            decode=self,
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """One step: the query [G, D] and all that is cached."""

    q: Array
    keys: Array
    values: Array
    step: int
    decode: Decode

    @property
    def num_pages(self) -> int:
        return -(-len(self.keys) // self.decode.block_size)

    @property
    def num_finished(self) -> int:
        return len(self.keys) // self.decode.block_size

    @property
    def middle(self) -> slice:
        stop = max(self.num_pages - self.decode.last_reserved, 0)
        return slice(min(self.decode.first_reserved, stop), stop)

    @property
    def logits(self) -> Array:
        """[G, T]"""
        scale = self.decode.scale or self.q.shape[1] ** -0.5
        out: Array = scale * (self.q @ self.keys.T)
        return out

    def finished(self, tokens: Array, part: int = 0) -> Array:
        """[pages, block, D] of the finished pages; with ``part``, [pages, parts, part, D]."""
        block = self.decode.block_size
        width = tokens.shape[1]
        whole = tokens[: self.num_finished * block]
        if part:
            return whole.reshape(self.num_finished, block // part, part, width)
        return whole.reshape(self.num_finished, block, width)

    def by_page(self, token_values: Array) -> Array:
        """Sums [G, T] over the tokens of each page: [G, pages]."""
        starts = np.arange(self.num_pages) * self.decode.block_size
        out: Array = np.add.reduceat(token_values, starts, axis=1)
        return out


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule gives at one step. ``pages`` is a list for each query head if they differ."""

    scores: Array  # by finished page, or [pages, G]
    pages: list[int]
    out: Array
    mass: Array  # [G, pages]


Score = Callable[[Moment], Array]


def softmax(logits: Array, axis: int = -1) -> Array:
    weights = np.exp(logits - logits.max(axis=axis, keepdims=True))
    out: Array = weights / weights.sum(axis=axis, keepdims=True)
    return out


def best(scores: Array, count: int) -> list[int]:
    """Positions of the ``count`` largest; of equals the lower ones."""
    order = np.lexsort((np.arange(len(scores)), -scores))
    return sorted(int(position) for position in order[:count])


def choose(moment: Moment, scores: Array, count: int | None = None) -> list[int]:
    """The reserved pages and the best of the middle."""
    middle = moment.middle
    wanted = moment.decode.budget if count is None else count
    chosen = [middle.start + position for position in best(scores[middle], wanted)]
    return reserved_and(moment, chosen)


def reserved_and(moment: Moment, chosen: list[int]) -> list[int]:
    middle = moment.middle
    edges = [*range(middle.start), *range(middle.stop, moment.num_pages)]
    return sorted({*edges, *chosen})


def tokens_of(moment: Moment, pages: list[int]) -> NDArray[np.intp]:
    block = moment.decode.block_size
    spans = [np.arange(page * block, min((page + 1) * block, len(moment.keys))) for page in pages]
    return np.concatenate(spans)


def attend(moment: Moment, pages: list[int]) -> tuple[Array, Array]:
    """Softmax attention over the tokens of ``pages``: the output [G, Dv], the mass [G, pages]."""
    tokens = tokens_of(moment, pages)
    weights = np.zeros(moment.logits.shape)
    weights[:, tokens] = softmax(moment.logits[:, tokens])
    return weights @ moment.values, moment.by_page(weights)


def run_scores(decode: Decode, score: Score) -> list[Found]:
    """A rule without memory: score, choose, attend, at every step."""
    found = []
    for step in range(len(decode.queries)):
        moment = decode.moment(step)
        scores = score(moment)
        pages = choose(moment, scores)
        found.append(Found(scores, pages, *attend(moment, pages)))
    return found
