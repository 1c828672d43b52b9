"""Products, written out: what GeMM, Kron and the factorised scores mean."""

import numpy as np

from tests.attention.oracle_ops.row import (
    AnyArray,
    Array,
    Operand,
    OracleRow,
    are_whole,
    at_inner,
    at_page,
    num_entries,
    wrapped,
)


def dot(left: AnyArray, right: AnyArray) -> float:
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += float(a) * float(b)
    return total


def whole_dot(left: AnyArray, right: AnyArray) -> int:
    return wrapped(sum(int(a) * int(b) for a, b in zip(left, right, strict=True)))


def gemm(_: OracleRow, x: Operand, y: Operand) -> AnyArray:
    """``out[s, a, b] = sum_k y[s, a, k] x[s, b, k]``: the second operand gives the rows.

    A contracted token that is not there adds nothing. A parameter with heads has rank 4.
    """
    if y.values.ndim == 4:
        return gemm_by_head(x.values, y.values[0])
    whole = are_whole(x.values, y.values)
    size = num_entries(x.values, y.values)
    shape = (size, y.values.shape[1], x.values.shape[1])
    out = np.empty(shape, dtype=np.int64 if whole else np.float64)
    for s, a, b in np.ndindex(*shape):
        both = at_page(y.there, s)[a] & at_page(x.there, s)[b]
        left, right = at_page(y.values, s)[a][both], at_page(x.values, s)[b][both]
        out[s, a, b] = whole_dot(left, right) if whole else dot(left, right)
    return out


def gemm_by_head(x: Array, weight: Array) -> Array:
    """``weight`` is ``[H, Ny, K]``: heads do not see each other."""
    heads, rows, _ = weight.shape
    per_head = x.shape[1] // heads
    out = np.empty((x.shape[0], heads * rows, per_head))
    for s, h, a, b in np.ndindex(x.shape[0], heads, rows, per_head):
        out[s, h * rows + a, b] = dot(weight[h, a], x[s, h * per_head + b])
    return out


def kron(x: AnyArray, y: AnyArray, *, dim: tuple[int, ...] = (1, 2)) -> AnyArray:
    """Axes in ``dim`` multiply, the other inner axis is stretched as in any binary op."""
    size = num_entries(x, y)
    sides = [
        x.shape[axis] * y.shape[axis] if axis in dim else max(x.shape[axis], y.shape[axis])
        for axis in (1, 2)
    ]
    whole = are_whole(x, y)
    out = np.empty((size, *sides), dtype=np.int64 if whole else np.float64)
    for s, i, j in np.ndindex(*out.shape):
        left_i, right_i = divmod(i, y.shape[1]) if 1 in dim else (i, i)
        left_j, right_j = divmod(j, y.shape[2]) if 2 in dim else (j, j)
        left, right = at_page(x, s), at_page(y, s)
        product = at_inner(left, left_i, left_j) * at_inner(right, right_i, right_j)
        out[s, i, j] = wrapped(product) if whole else product
    return out


def factor_score(q: Array, weight: Array, descriptors: Array) -> Array:
    """``sum_h max_m <Wq[h]^T q_h, g[h, m]>``; ``weight`` is ``[1, H, d, r]``."""
    weight = weight[0]
    heads, _, width = weight.shape
    m = descriptors.shape[1] // heads
    out = np.empty((descriptors.shape[0], 1, 1))
    for s in range(descriptors.shape[0]):
        total = 0.0
        for h in range(heads):
            projected = np.array([dot(weight[h, :, c], q[0, h]) for c in range(width)])
            total += max(dot(projected, descriptors[s, h * m + i]) for i in range(m))
        out[s, 0, 0] = total
    return out


def learned_descriptor(x: Array, token_weight: Array, channel_weight: Array) -> Array:
    """``g[h, i, :] = (Wt[h]^T X)[i] Wk[h]``, rows stored as ``h * m + i``.

    ``token_weight`` is ``[1, H, block, m]``, ``channel_weight`` ``[1, H, d, r]``.
    """
    token_weight, channel_weight = token_weight[0], channel_weight[0]
    heads, _, m = token_weight.shape
    width = channel_weight.shape[2]
    out = np.empty((x.shape[0], heads * m, width))
    for s, h, i, c in np.ndindex(x.shape[0], heads, m, width):
        mixed = np.array([dot(token_weight[h, :, i], x[s, :, d]) for d in range(x.shape[2])])
        out[s, h * m + i, c] = dot(mixed, channel_weight[h, :, c])
    return out
