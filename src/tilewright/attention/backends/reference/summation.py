"""Sums in one fixed order, so that bits depend on the summed axis alone."""

from typing import Any

from tilewright.attention.backends.reference.namespace import Array


def tree_sum(xp: Any, x: Array, axis: int) -> Array:
    """Sum over an axis that stays, with size 1: halves are added element by element.

    A library's own sum chooses its order by the shape and by its threads. Element-wise additions
    do not, so a value is the same alone and among others.
    """
    axis %= x.ndim
    count = x.shape[axis]
    if count == 0:
        shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
        return xp.zeros(shape, dtype=x.dtype)
    while count > 1:
        half = count // 2
        total = _part(x, axis, 0, half) + _part(x, axis, half, 2 * half)
        if count % 2:
            total = xp.concat([total, _part(x, axis, 2 * half, count)], axis=axis)
        x, count = total, half + count % 2
    return x


def _part(x: Array, axis: int, start: int, stop: int) -> Array:
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]
