"""Reductions: extremes with positions, parity, and Welford's moments by a function of its own."""

import triton
import triton.language as tl


@triton.jit
def welford(mean_left, m2_left, n_left, mean_right, m2_right, n_right):
    delta = mean_right - mean_left
    n = n_left + n_right
    share = n_right / n
    mean = mean_left + delta * share
    return mean, m2_left + m2_right + delta * delta * n_left * share, n


@triton.jit
def moments_kernel(x_ptr, mean_ptr, var_ptr, COLS: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * COLS + tl.arange(0, COLS))
    zeros = tl.zeros([COLS], tl.float32)
    mean, m2, n = tl.reduce((x, zeros, zeros + 1), 0, welford)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, m2 / n)


@triton.jit
def extremes_kernel(
    x_ptr, best_ptr, where_ptr, least_ptr, parity_ptr, ROWS: tl.constexpr, COLS: tl.constexpr
):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + rows[:, None] * COLS + columns[None, :])
    best, where = tl.max(x, axis=1, return_indices=True)
    tl.store(best_ptr + rows, best)
    tl.store(where_ptr + rows, where)
    tl.store(least_ptr + rows, tl.argmin(x, axis=1))
    tl.store(parity_ptr + columns, tl.xor_sum(x, axis=0))
