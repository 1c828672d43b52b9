"""Positions as values: where the largest is, what stands at a position, and a page's own place."""

import math

import numpy as np

from tests.attention.oracle_ops.row import Array, OracleRow, at_page, num_entries


def turned(x: Array, dim: int) -> Array:
    """The axis ``dim`` (1 or 2) put last."""
    return np.swapaxes(x, 1, 2) if dim == 1 else x


def arg_top(x: Array, *, k: int, dim: int = 2) -> Array:
    """Positions of the ``k`` largest, the largest first and the lower one of equals first."""
    source = turned(x, dim)
    out = np.empty((*source.shape[:2], k))
    for s, i in np.ndindex(*source.shape[:2]):
        order = sorted((-float(value), j) for j, value in enumerate(source[s, i]))
        out[s, i] = [j for _, j in order[:k]]
    return turned(out, dim)


def arg_max(x: Array, *, dim: int = 1) -> Array:
    return arg_top(x, k=1, dim=dim)


def gather(x: Array, index: Array, *, dim: int = 1) -> Array:
    """Rows (dim 1) or columns (dim 2) of ``x`` in the order of the flattened ``index``."""
    size = num_entries(x, index)
    count = index.shape[1] * index.shape[2]
    source = turned(x, dim)
    out = np.empty((size, source.shape[1], count))
    for s, i, j in np.ndindex(*out.shape):
        out[s, i, j] = at_page(source, s)[i, int(at_page(index, s).reshape(-1)[j])]
    return turned(out, dim)


def cum_sum(x: Array, *, dim: int = 0) -> Array:
    """Up to and including: over pages of the row (0), rows (1) or columns (2)."""
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        before = list(index)
        terms = []
        for position in range(index[dim] + 1):
            before[dim] = position
            terms.append(float(x[tuple(before)]))
        out[index] = math.fsum(terms)
    return out


def page_values(row: OracleRow, values: list[float]) -> Array:
    return np.array(values, dtype=np.float64).reshape(row.num_pages, 1, 1)


def page_index(row: OracleRow) -> Array:
    """The logical position, from 0."""
    return page_values(row, [float(page) for page in range(row.num_pages)])


def page_age(row: OracleRow) -> Array:
    """How many pages lie behind: 0 for the last one."""
    return page_values(row, [float(row.num_pages - 1 - page) for page in range(row.num_pages)])


def token_count(row: OracleRow) -> Array:
    return page_values(row, [float(row.tokens_in(page)) for page in range(row.num_pages)])


def step_index(row: OracleRow) -> Array:
    return np.full((1, 1, 1), float(row.step))


def head_index(row: OracleRow) -> Array:
    return np.full((1, 1, 1), float(row.head))
