"""A dot-product array step by step, over every multiply-add that it makes; slow on purpose."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DotArrayRun:
    """What the array computed, how often it made each multiply-add, and in how many cycles."""

    product: Matrix
    times_made: Matrix  # by (m, n, k)
    num_cycles: int


def run_dot_array(
    left: Matrix,
    right: Matrix,
    *,
    shape: tuple[int, int, int],
    step_cycles: int = 1,
    fill_cycles: int = 0,
) -> DotArrayRun:
    """Multiply with an array that takes ``shape`` = (rows, columns, depth) at a step."""
    (num_rows, depth), num_columns = left.shape, right.shape[1]
    rows, columns, step_depth = shape
    product = np.zeros((num_rows, num_columns), np.int64)
    times_made = np.zeros((num_rows, num_columns, depth), np.int64)
    now = 0
    for down in _pieces(num_rows, rows):
        for across in _pieces(num_columns, columns):
            for deep in _pieces(depth, step_depth):
                product[down, across] += left[down, deep] @ right[deep, across]
                times_made[down, across, deep] += 1
                now += step_cycles
    return DotArrayRun(product, times_made, now + fill_cycles)


def _pieces(extent: int, size: int) -> Iterator[slice]:
    start = 0
    while start < extent:
        yield slice(start, min(start + size, extent))
        start += size
