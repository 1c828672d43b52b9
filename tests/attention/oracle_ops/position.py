"""Sources: positions, ages and counts as values, what is read from outside, and the rotation."""

import math

import numpy as np

from tests.attention.oracle_ops.row import (
    AnyArray,
    Array,
    Operand,
    OracleRow,
    at_inner,
    at_page,
    num_entries,
)


def per_page(values: list[int]) -> AnyArray:
    return np.array(values, dtype=np.int64).reshape(-1, 1, 1)


def per_row(value: int) -> AnyArray:
    return np.full((1, 1, 1), value, dtype=np.int64)


def page_index(row: OracleRow) -> AnyArray:
    return per_page(list(row.pages))


def page_age(row: OracleRow) -> AnyArray:
    """How many pages came after."""
    return per_page([row.num_pages - 1 - page for page in row.pages])


def token_count(row: OracleRow) -> AnyArray:
    return per_page([row.tokens_in(page) for page in row.pages])


def token_position(row: OracleRow) -> AnyArray:
    """[., block, 1], also for tokens that are not there."""
    size = row.block_size
    spans = [[page * size + offset for offset in range(size)] for page in row.pages]
    return np.array(spans, dtype=np.int64)[..., None]


def token_valid(row: OracleRow) -> AnyArray:
    there = [[o < row.tokens_in(page) for o in range(row.block_size)] for page in row.pages]
    return np.array(there, dtype=np.bool_)[..., None]


def reserved_pages(row: OracleRow) -> AnyArray:
    return np.array([page in row.reserved for page in row.pages]).reshape(-1, 1, 1)


def query_head_index(row: OracleRow) -> AnyArray:
    first = row.head * row.query_heads
    return np.arange(first, first + row.query_heads, dtype=np.int64).reshape(1, -1, 1)


def constant(*, value: float, dtype: str = "float32") -> AnyArray:
    kinds = {"float32": np.float64, "int32": np.int64, "bool": np.bool_}
    return np.full((1, 1, 1), value, dtype=kinds[dtype])


def copied(x: AnyArray) -> AnyArray:
    """Inputs, state and parameters: the value itself."""
    return x.copy()


def field_read(_: OracleRow, x: Operand) -> AnyArray:
    """Tokens that are not there read as 0."""
    out: AnyArray = np.where(x.there, x.values, 0)
    return out


def rope(
    x: Array, position: AnyArray, *, base: float = 10000.0, interleaved: bool = False
) -> Array:
    """Pair i turns by ``position * base**(-2 i / c)``."""
    size, (rows, columns) = num_entries(x, position), x.shape[1:]
    out = np.empty((size, rows, columns))
    for s, r, i in np.ndindex(size, rows, columns // 2):
        angle = float(at_inner(at_page(position, s), r, 0)) * base ** (-2.0 * i / columns)
        one, two = (2 * i, 2 * i + 1) if interleaved else (i, i + columns // 2)
        a, b = float(at_page(x, s)[r, one]), float(at_page(x, s)[r, two])
        out[s, r, one] = a * math.cos(angle) - b * math.sin(angle)
        out[s, r, two] = a * math.sin(angle) + b * math.cos(angle)
    return out
