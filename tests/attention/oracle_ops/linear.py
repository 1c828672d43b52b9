"""Matrix products, written out: what GeMM, GeMV, Kron and the factorised scores mean."""

import numpy as np

from tests.attention.oracle_ops.row import Array, at_inner, at_page, num_entries


def dot(left: Array, right: Array) -> float:
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += float(a) * float(b)
    return total


def gemm(x: Array, y: Array) -> Array:
    """``out[s, a, b] = sum_k y[s, a, k] x[s, b, k]``: the second operand gives the rows."""
    size = num_entries(x, y)
    out = np.empty((size, y.shape[1], x.shape[1]))
    for s, a, b in np.ndindex(*out.shape):
        out[s, a, b] = dot(at_page(y, s)[a], at_page(x, s)[b])
    return out


def gemm_with_parameter(x: Array, weight: Array) -> Array:
    """``weight`` is ``[Ny, K]``, or ``[H, Ny, K]`` with heads that do not see each other."""
    if weight.ndim == 2:
        return gemm(x, weight[None])
    heads, rows, _ = weight.shape
    per_head = x.shape[1] // heads
    out = np.empty((x.shape[0], heads * rows, per_head))
    for s, h, a, b in np.ndindex(x.shape[0], heads, rows, per_head):
        out[s, h * rows + a, b] = dot(weight[h, a], x[s, h * per_head + b])
    return out


def gemv(x: Array, y: Array) -> Array:
    """The dot product of one row of the query with one row of each page."""
    size = num_entries(x, y)
    out = np.empty((size, 1, 1))
    for s in range(size):
        out[s, 0, 0] = dot(at_page(x, s)[0], at_page(y, s)[0])
    return out


def kron(x: Array, y: Array, *, dim: int | tuple[int, ...] = (1, 2)) -> Array:
    """Axes in ``dim`` multiply, the other inner axis is stretched as in any binary op."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    size = num_entries(x, y)
    sides = [
        x.shape[axis] * y.shape[axis] if axis in dims else max(x.shape[axis], y.shape[axis])
        for axis in (1, 2)
    ]
    out = np.empty((size, *sides))
    for s, i, j in np.ndindex(*out.shape):
        left_i, right_i = divmod(i, y.shape[1]) if 1 in dims else (i, i)
        left_j, right_j = divmod(j, y.shape[2]) if 2 in dims else (j, j)
        left, right = at_page(x, s), at_page(y, s)
        out[s, i, j] = at_inner(left, left_i, left_j) * at_inner(right, right_i, right_j)
    return out


def factor_score(q: Array, descriptors: Array, weight: Array) -> Array:
    """``sum_h max_m <Wq[h]^T q_h, g[h, m]>``; ``weight`` is ``[H, d, r]``."""
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

    ``token_weight`` is ``[H, block, m]``, ``channel_weight`` ``[H, d, r]``.
    """
    heads, _, m = token_weight.shape
    width = channel_weight.shape[2]
    out = np.empty((x.shape[0], heads * m, width))
    for s, h, i, c in np.ndindex(x.shape[0], heads, m, width):
        mixed = np.array([dot(token_weight[h, :, i], x[s, :, d]) for d in range(x.shape[2])])
        out[s, h * m + i, c] = dot(mixed, channel_weight[h, :, c])
    return out
