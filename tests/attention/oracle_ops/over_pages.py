"""Ops along the pages of a row; reserved pages pass through where only the middle counts."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tests.attention.oracle_ops.row import Array, OracleRow


def softmax(row: OracleRow, x: Array, *, scale: float = 1.0, scope: str = "middle") -> Array:
    """Per inner position over the middle; a column of equal values, masked or not, is uniform."""
    out = x.copy()
    pages = row.middle if scope == "middle" else range(row.num_pages)
    for i, j in np.ndindex(*x.shape[1:]):
        if len(pages) == 0:
            continue
        top = max(scale * float(x[page, i, j]) for page in pages)
        weights = [math.exp(scale * float(x[page, i, j]) - top) for page in pages]
        total = math.fsum(weights)
        for page, weight in zip(pages, weights, strict=True):
            out[page, i, j] = weight / total
    return out


def normalize(row: OracleRow, x: Array, *, scope: str = "middle") -> Array:
    """Divided by the L2 norm over the middle, which counts as 1e-12 at least."""
    out = x.copy()
    pages = row.middle if scope == "middle" else range(row.num_pages)
    for i, j in np.ndindex(*x.shape[1:]):
        norm = math.sqrt(math.fsum(float(x[page, i, j]) ** 2 for page in pages))
        for page in pages:
            out[page, i, j] = float(x[page, i, j]) / max(norm, 1e-12)
    return out


def conv1d(row: OracleRow, x: Array, *, weight: Sequence[Sequence[Sequence[float]]]) -> Array:
    """Causal: ``out[p] = sum_k weight[k] x[p - k]``, and zeros before the middle begins."""
    taps = np.array(weight, dtype=np.float64)
    out = x.copy()
    for page in row.middle:
        for i, j in np.ndindex(*x.shape[1:]):
            total = 0.0
            for k in range(taps.shape[0]):
                if page - k in row.middle:
                    total += float(taps[k, i, j]) * float(x[page - k, i, j])
            out[page, i, j] = total
    return out


def shift(row: OracleRow, x: Array, *, offset: int, fill: float = 0.0) -> Array:
    """``out[p] = x[p + offset]``, and ``fill`` beyond the ends of the row."""
    out = np.full(x.shape, float(fill))
    for page in range(row.num_pages):
        if 0 <= page + offset < row.num_pages:
            out[page] = x[page + offset]
    return out


def pooling(kind: Callable[[Sequence[float]], float]) -> Callable[..., Array]:
    """Over the pages ``p - before .. p + after`` that exist, at every page."""

    def pool(row: OracleRow, x: Array, *, before: int = 0, after: int = 0) -> Array:
        out = np.empty(x.shape)
        for page, i, j in np.ndindex(*x.shape):
            near = range(max(page - before, 0), min(page + after + 1, row.num_pages))
            out[page, i, j] = kind([float(x[other, i, j]) for other in near])
        return out

    return pool
