"""Reductions over rows, columns, pages, and over groups of neighbours."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tests.attention.oracle_ops.row import Array, OracleRow

Kind = Callable[[Sequence[float]], float]


def mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def l2_norm_of(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values))


KINDS: dict[str, Kind] = {
    "Sum": math.fsum,
    "Mean": mean_of,
    "Max": max,
    "Min": min,
    "L2Norm": l2_norm_of,
}


def reduction(kind: Kind) -> Callable[..., Array]:
    """dim 1 and 2 keep the axis with size 1; dim 0 is over the middle, and 0 where it is empty."""

    def reduce(row: OracleRow, x: Array, *, dim: int = 1, scope: str = "middle") -> Array:
        size, rows, columns = x.shape
        if dim == 1:
            out = np.empty((size, 1, columns))
            for s, j in np.ndindex(size, columns):
                out[s, 0, j] = kind([float(value) for value in x[s, :, j]])
            return out
        if dim == 2:
            out = np.empty((size, rows, 1))
            for s, i in np.ndindex(size, rows):
                out[s, i, 0] = kind([float(value) for value in x[s, i, :]])
            return out
        pages = row.middle if scope == "middle" else range(row.num_pages)
        out = np.zeros((1, rows, columns))
        for i, j in np.ndindex(rows, columns):
            if len(pages) > 0:
                out[0, i, j] = kind([float(x[page, i, j]) for page in pages])
        return out

    return reduce


def interleaved(kind: Kind) -> Callable[..., Array]:
    """``out[m] = reduction of x[m * k + j]`` over ``j < k``, on rows (1) or columns (2)."""

    def reduce(x: Array, *, dim: int = 1, k: int = 2) -> Array:
        turned = x if dim == 1 else np.swapaxes(x, 1, 2)
        size, rows, columns = turned.shape
        out = np.empty((size, rows // k, columns))
        for s, m, j in np.ndindex(*out.shape):
            out[s, m, j] = kind([float(turned[s, m * k + i, j]) for i in range(k)])
        return out if dim == 1 else np.swapaxes(out, 1, 2)

    return reduce
