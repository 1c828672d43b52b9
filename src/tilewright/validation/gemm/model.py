"""GEMM arrays step by step, over every cell and every multiply-add; slow on purpose.

Every cell of a systolic array holds one operand from the west, one from the north and a sum. Each
cycle all operands move on by one cell, new ones enter at two edges, and cells that hold a pair add
its product. Nothing here knows a formula: an array is done when its last cell has seen all of K.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SystolicRun:
    """What the array computed, and in which cycle each fold was done, counted from 0."""

    product: Matrix
    fold_ends: tuple[int, ...]

    @property
    def num_cycles(self) -> int:
        return self.fold_ends[-1] + 1


def run_systolic(
    left: Matrix, right: Matrix, *, rows: int, columns: int, products: int = 1
) -> SystolicRun:
    """Multiply, one rows x columns block of results after the other.

    ``products`` values of K travel together and are multiplied in one cycle.
    """
    num_rows, num_columns = left.shape[0], right.shape[1]
    product = np.zeros((num_rows, num_columns), dtype=np.int64)
    fold_ends: list[int] = []
    now = 0
    for top in range(0, num_rows, rows):
        for west in range(0, num_columns, columns):
            block = product[top : top + rows, west : west + columns]
            from_west = _stream(left[top : top + rows], rows, products)
            from_north = _stream(right[:, west : west + columns].T, columns, products)
            sums, num_cycles = _run_fold(from_west, from_north)
            block[:] = sums[: block.shape[0], : block.shape[1]]
            now += num_cycles
            fold_ends.append(now - 1)
    return SystolicRun(product, tuple(fold_ends))


def _stream(lines: Matrix, num_lines: int, products: int) -> Matrix:
    """What enters at one edge, by (group of K, line, product); zeros where the matrix ends."""
    num_groups = len(range(0, lines.shape[1], products))
    stream = np.zeros((num_lines, num_groups * products), np.int64)
    stream[: lines.shape[0], : lines.shape[1]] = lines
    return stream.reshape(num_lines, num_groups, products).swapaxes(0, 1)


def _run_fold(west_stream: Matrix, north_stream: Matrix) -> tuple[Matrix, int]:
    """Sums of one block of results, and the cycles until its last cell has seen all of K."""
    num_groups, rows, products = west_stream.shape
    columns = north_stream.shape[1]
    west = np.zeros((rows, columns, products), np.int64)
    north = np.zeros((rows, columns, products), np.int64)
    is_real = np.zeros((rows, columns), dtype=bool)  # travels with the operand from the west
    sums, seen = np.zeros((rows, columns), np.int64), np.zeros((rows, columns), np.int64)
    cycle = 0
    while seen[-1, -1] < num_groups:
        west[:, 1:] = west[:, :-1].copy()
        is_real[:, 1:] = is_real[:, :-1].copy()
        north[1:] = north[:-1].copy()
        west[:, 0], is_real[:, 0] = _entering(west_stream, cycle)
        north[0], _ = _entering(north_stream, cycle)
        sums += (west * north).sum(axis=2)
        seen += is_real
        cycle += 1
    return sums, cycle


def _entering(stream: Matrix, cycle: int) -> tuple[Matrix, NDArray[np.bool_]]:
    """The operands of every line in a cycle: each line starts a cycle after the one before it."""
    num_groups, num_lines, products = stream.shape
    lines = np.arange(num_lines)
    groups = cycle - lines
    is_real = (groups >= 0) & (groups < num_groups)
    operands = np.zeros((num_lines, products), np.int64)
    operands[is_real] = stream[groups[is_real], lines[is_real]]
    return operands, is_real


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


def _pieces(extent: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, extent)) for start in range(0, extent, size)]
