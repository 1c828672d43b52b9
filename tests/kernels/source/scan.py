"""Scans along rows: sums, products, and a linear recurrence by a function of its own."""

import triton
import triton.language as tl


@triton.jit
def recurrence(a_left, b_left, a_right, b_right):
    """x -> a x + b, one step after the other."""
    return a_left * a_right, a_right * b_left + b_right


@triton.jit
def scan_kernel(
    x_ptr, decay_ptr, sum_ptr, back_ptr, product_ptr, state_ptr, n_cols, COLS: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = rows[:, None] * n_cols + tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + offsets)
    decay = tl.load(decay_ptr + offsets)
    tl.store(sum_ptr + offsets, tl.cumsum(x, axis=1))
    tl.store(back_ptr + offsets, tl.cumsum(x, axis=1, reverse=True))
    tl.store(product_ptr + offsets, tl.cumprod(decay, axis=1))
    _, state = tl.associative_scan((decay, x), 1, recurrence)
    tl.store(state_ptr + offsets, state)
