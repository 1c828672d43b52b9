"""Which pages of a row are read: one order, one tie rule, reserved pages always."""

import math

import numpy as np

from tests.attention.oracle_ops.row import Array, OracleRow, Positions


def key(score: float, page: int) -> tuple[float, int]:
    """Sorts by larger score, then by lower position; NaN counts as minus infinity."""
    return (math.inf if math.isnan(score) else -score, page)


def ranked(row: OracleRow, score: Array) -> list[int]:
    """The middle, best page first."""
    return sorted(row.middle, key=lambda page: key(float(score[page, 0, 0]), page))


def with_reserved(row: OracleRow, chosen: list[int]) -> Positions:
    return np.array(sorted({*row.reserved, *chosen}), dtype=np.int64)


def top_k(row: OracleRow, score: Array) -> Positions:
    """The budget's best pages of the middle; all of them if the budget reaches."""
    return with_reserved(row, ranked(row, score)[: row.budget])


def fixed_top_k(row: OracleRow, score: Array, *, k: int) -> tuple[Positions, int]:
    """TopK: the pages, and the tokens they hold."""
    pages = with_reserved(row, ranked(row, score)[:k])
    return pages, sum(row.tokens_in(int(page)) for page in pages)


def union(*streams: Positions) -> Positions:
    return np.array(sorted({int(page) for stream in streams for page in stream}), dtype=np.int64)


def intersection(row: OracleRow, *streams: Positions) -> Positions:
    """What every stream has; reserved pages are in all of them."""
    common = set.intersection(*({int(page) for page in stream} for stream in streams))
    return with_reserved(row, sorted(common))


def top_p(
    row: OracleRow,
    score: Array,
    *,
    p: float,
    max_blocks: int | None = None,
    min_blocks: int = 0,
) -> Positions:
    """The fewest best pages whose share of the middle's scores reaches ``p``; all at ``p >= 1``."""
    order = ranked(row, score)
    total = math.fsum(float(score[page, 0, 0]) for page in order)
    count = len(order)
    if p < 1.0:
        held = 0.0
        for count, page in enumerate(order):  # noqa: B007 - the count is the answer
            if held >= p * total:
                break
            held += float(score[page, 0, 0])
        else:
            count = len(order)
    ceiling = len(order) if max_blocks is None else max_blocks
    return with_reserved(row, order[: min(max(count, min_blocks), ceiling)])


def threshold(row: OracleRow, score: Array, *, t: float) -> Positions:
    return with_reserved(row, [page for page in row.middle if float(score[page, 0, 0]) >= t])
