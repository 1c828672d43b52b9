"""Ops that move or replace values without arithmetic."""

import numpy as np

from tests.attention.oracle_ops.row import Array


def transpose(x: Array) -> Array:
    size, rows, columns = x.shape
    out = np.empty((size, columns, rows))
    for s, i, j in np.ndindex(size, rows, columns):
        out[s, j, i] = x[s, i, j]
    return out


def reshape(x: Array, *, x2: int, y2: int) -> Array:
    """Row-major: element ``e`` of a page stays element ``e``."""
    size, _, columns = x.shape
    out = np.empty((size, x2, y2))
    for s, element in np.ndindex(size, x2 * y2):
        out[s, element // y2, element % y2] = x[s, element // columns, element % columns]
    return out


def mask_slice(
    x: Array,
    *,
    start: int,
    end: int,
    dim: int,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Array:
    """``alpha`` inside ``start <= i < end``, ``beta`` outside; values of ``x`` do not matter."""
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        out[index] = alpha if start <= index[dim] < end else beta
    return out


def fill(x: Array, *, alpha: float = 0.0) -> Array:
    return np.full(x.shape, float(alpha))


def copy(x: Array) -> Array:
    """Load and Save: the value itself."""
    return x.copy()
