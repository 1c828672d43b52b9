"""Counts of values: a block's by one op, all blocks' by atomics."""

import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    counts = tl.histogram(x, BINS, mask=mask)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)
