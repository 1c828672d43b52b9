"""Softmax of rows, fused; a program takes every n-th row."""

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr
):
    first_row = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row in tl.range(first_row, n_rows, row_step):
        columns = tl.arange(0, BLOCK_SIZE)
        mask = columns < n_cols
        x = tl.load(in_ptr + row * in_stride + columns, mask=mask, other=-float("inf"))
        shifted = x - tl.max(x, axis=0)
        numerator = tl.exp(shifted)
        denominator = tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * out_stride + columns, numerator / denominator, mask=mask)
