"""Ops that move, cut or replace values without arithmetic."""

import numpy as np

from tests.attention.oracle_ops.row import AnyArray, Array, at_inner, at_page, num_entries


def transpose(x: AnyArray) -> AnyArray:
    size, rows, columns = x.shape
    out = np.empty((size, columns, rows), dtype=x.dtype)
    for s, i, j in np.ndindex(size, rows, columns):
        out[s, j, i] = x[s, i, j]
    return out


def reshape(x: AnyArray, *, rows: int, columns: int) -> AnyArray:
    """Row-major: element ``e`` of a page stays element ``e``."""
    size, _, width = x.shape
    out = np.empty((size, rows, columns), dtype=x.dtype)
    for s, element in np.ndindex(size, rows * columns):
        out[s, element // columns, element % columns] = x[s, element // width, element % width]
    return out


def mask_slice(
    x: AnyArray, *, start: int, end: int, dim: int, alpha: float = 1.0, beta: float = 0.0
) -> Array:
    """``alpha`` inside ``start <= i < end``, ``beta`` outside; values of ``x`` do not matter."""
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        out[index] = alpha if start <= index[dim] < end else beta
    return out


def cut(x: AnyArray, *, start: int, end: int, dim: int) -> AnyArray:
    """Slice: elements ``start <= i < end`` of the axis."""
    shape = [end - start if axis == dim else size for axis, size in enumerate(x.shape)]
    out = np.empty(shape, dtype=x.dtype)
    for index in np.ndindex(*shape):
        out[index] = x[(*index[:dim], index[dim] + start, *index[dim + 1 :])]
    return out


def concat(*parts: AnyArray, dim: int = 2) -> AnyArray:
    """One after the other along ``dim``; the other inner axis is stretched."""
    size = num_entries(*parts)
    other = 3 - dim
    shape = [size, 0, 0]
    shape[dim] = sum(part.shape[dim] for part in parts)
    shape[other] = max(part.shape[other] for part in parts)
    out = np.empty(shape, dtype=parts[0].dtype)
    start = 0
    for part in parts:
        for s, place, o in np.ndindex(size, part.shape[dim], shape[other]):
            inner = (place, o) if dim == 1 else (o, place)
            target = (s, start + place, o) if dim == 1 else (s, o, start + place)
            out[target] = at_inner(at_page(part, s), *inner)
        start += part.shape[dim]
    return out


def gather(x: AnyArray, index: AnyArray, *, dim: int = 2) -> AnyArray:
    """Elements of the axis at the positions in ``index``; a position outside gives 0."""
    size = len(index) if dim == 0 else num_entries(x, index)
    shape = [size, *x.shape[1:]]
    if dim:
        shape[dim] = index.shape[dim]
    out = np.zeros(shape, dtype=x.dtype)
    for s, i, j in np.ndindex(*shape):
        position = int(at_inner(at_page(index, s), i if dim == 1 else 0, j if dim == 2 else 0))
        if not 0 <= position < x.shape[dim]:
            continue
        if dim == 0:
            out[s, i, j] = x[position, i, j]
        else:
            place = (position, j) if dim == 1 else (i, position)
            out[s, i, j] = at_page(x, s)[place]
    return out
