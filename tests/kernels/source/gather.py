"""Rows of a table by an index tensor, and columns of a block by another."""

import triton
import triton.language as tl


@triton.jit
def embedding_kernel(
    index_ptr, table_ptr, out_ptr, n_tokens, width, TOKENS: tl.constexpr, WIDTH: tl.constexpr
):
    tokens = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    columns = tl.arange(0, WIDTH)
    known = tokens < n_tokens
    rows = tl.load(index_ptr + tokens, mask=known, other=0)
    mask = known[:, None] & (columns[None, :] < width)
    values = tl.load(table_ptr + rows[:, None] * width + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + tokens[:, None] * width + columns[None, :], values, mask=mask)


@triton.jit
def shuffle_kernel(x_ptr, index_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    offsets = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + offsets)
    index = tl.load(index_ptr + offsets)
    tl.store(out_ptr + offsets, tl.gather(x, index, axis=1))
