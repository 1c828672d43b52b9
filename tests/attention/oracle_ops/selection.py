"""Which pages of a row are read: one order, one tie rule, reserved pages always.

Scores are ``[S, 1, 1]``, or ``[S, 1, H]`` with a choice for each query head; so is the result.
"""

import math
from collections.abc import Callable

import numpy as np

from tests.attention.oracle_ops.row import AnyArray, Mask, OracleRow, Positions

Choice = Callable[[OracleRow, list[float]], list[int]]


def ranked(row: OracleRow, score: list[float]) -> list[int]:
    """The middle, best page first: larger scores, then lower positions; NaN is minus infinity."""

    def key(page: int) -> tuple[float, int]:
        return (math.inf if math.isnan(score[page]) else -score[page], page)

    return sorted(row.middle, key=key)


def by_head(row: OracleRow, scores: AnyArray, choice: Choice) -> Mask:
    out = np.zeros(scores.shape, dtype=np.bool_)
    for head in range(scores.shape[2]):
        chosen = choice(row, [float(score) for score in scores[:, 0, head]])
        for page in (*row.reserved, *chosen):
            out[page, 0, head] = True
    return out


def top_k(row: OracleRow, scores: AnyArray, *, k: int | None = None) -> Mask:
    """The k best pages of the middle, or the plan's budget of them; all if there are no more."""
    count = row.budget if k is None else k
    return by_head(row, scores, lambda row, score: ranked(row, score)[:count])


def top_p(
    row: OracleRow,
    scores: AnyArray,
    *,
    p: float,
    min_pages: int = 0,
    max_pages: int | None = None,
    span: str = "middle",
) -> Mask:
    """The fewest best pages whose share of the weights reaches ``p``; all at ``p = 1``.

    Under span ``all`` the reserved pages count, and are there before any other.
    """

    def choice(row: OracleRow, score: list[float]) -> list[int]:
        weight = [value if value > 0.0 else 0.0 for value in score]  # NaN is not above 0
        order = ranked(row, weight)
        held = [weight[page] for page in row.reserved] if span == "all" else []
        total = math.fsum([*held, *(weight[page] for page in order)])
        count = 0
        while count < len(order) and total > 0.0 and (p == 1.0 or math.fsum(held) < p * total):
            held.append(weight[order[count]])
            count += 1
        limit = len(order) if max_pages is None else max_pages
        return order[: min(max(count, min_pages), limit)]

    return by_head(row, scores, choice)


def threshold(
    row: OracleRow,
    scores: AnyArray,
    *,
    value: float,
    min_pages: int = 0,
    max_pages: int | None = None,
) -> Mask:
    def choice(row: OracleRow, score: list[float]) -> list[int]:
        order = ranked(row, score)
        count = sum(1 for page in order if score[page] >= value or value == -math.inf)
        limit = len(order) if max_pages is None else max_pages
        return order[: min(max(count, min_pages), limit)]

    return by_head(row, scores, choice)


def selected_tokens(row: OracleRow, selection: Mask) -> AnyArray:
    """Tokens of the selected and the reserved pages."""
    out = np.zeros((1, *selection.shape[1:]), dtype=np.int64)
    for page, i, j in np.ndindex(*selection.shape):
        if selection[page, i, j] or page in row.reserved:
            out[0, i, j] += row.tokens_in(page)
    return out


def pages_of(row: OracleRow, selection: Mask, head: int = 0) -> Positions:
    """The pages that attention reads for a query head, in ascending order."""
    column = min(head, selection.shape[2] - 1)
    chosen = [page for page in range(row.num_pages) if selection[page, 0, column]]
    return np.array(sorted({*row.reserved, *chosen}), dtype=np.int64)
