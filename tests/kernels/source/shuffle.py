"""Moving elements within a block: transpose, join, split, interleave, flip, cat, broadcast."""

import triton
import triton.language as tl


@triton.jit
def shuffle_kernel(
    x_ptr, y_ptr, trans_ptr, pairs_ptr, odd_ptr, flip_ptr, cat_ptr, outer_ptr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLS)
    offsets = rows[:, None] * COLS + columns[None, :]
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(trans_ptr + columns[:, None] * ROWS + rows[None, :], tl.trans(x))
    wide = rows[:, None] * (2 * COLS) + tl.arange(0, 2 * COLS)[None, :]
    tl.store(pairs_ptr + wide, tl.interleave(x, y))
    even, odd = tl.split(tl.reshape(x, (ROWS, COLS // 2, 2)))
    half = rows[:, None] * (COLS // 2) + tl.arange(0, COLS // 2)[None, :]
    tl.store(odd_ptr + half, odd - even)
    tl.store(flip_ptr + offsets, tl.flip(x, 1))
    flat = tl.ravel(x)
    both = tl.cat(flat, tl.ravel(y), dim=0)
    tl.store(cat_ptr + tl.arange(0, 2 * ROWS * COLS), both)
    outer = tl.broadcast_to(tl.expand_dims(tl.sum(x, 1), 1), (ROWS, COLS))
    swapped = tl.permute(tl.join(outer, y), (2, 0, 1))
    places = tl.arange(0, 2)[:, None, None] * (ROWS * COLS) + offsets[None, :, :]
    tl.store(outer_ptr + places, swapped)
