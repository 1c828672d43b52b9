"""The k largest of a row with their positions, by sorting keys made of both."""

import triton
import triton.language as tl


@triton.jit
def top_k_kernel(x_ptr, value_ptr, index_ptr, n_cols, BLOCK: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + columns, mask=columns < n_cols, other=-float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    # order floats as integers, then put the position below: lower ones first among equals
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    keys = (ordered << 32) | (BLOCK - 1 - columns).to(tl.int64)
    best = tl.sort(keys, descending=True)
    position = (BLOCK - 1 - (best & 0xFFFFFFFF)).to(tl.int32)
    top = (best >> 32).to(tl.int32)
    value = tl.where(top < 0, top ^ 0x7FFFFFFF, top).to(tl.float32, bitcast=True)
    ranks = tl.arange(0, BLOCK)
    tl.store(value_ptr + row * K + ranks, value, mask=ranks < K)
    tl.store(index_ptr + row * K + ranks, position, mask=ranks < K)


@triton.jit
def top_values_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))
