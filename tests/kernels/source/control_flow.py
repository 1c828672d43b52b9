"""Loops and branches whose course depends on what was loaded."""

import triton
import triton.language as tl


@triton.jit
def collatz_kernel(start_ptr, steps_ptr, peak_ptr):
    pid = tl.program_id(0)
    n = tl.load(start_ptr + pid)
    steps = 0
    peak = n
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        peak = tl.maximum(peak, n)
        steps += 1
    tl.store(steps_ptr + pid, steps)
    tl.store(peak_ptr + pid, peak)


@triton.jit
def ragged_sum_kernel(values_ptr, offsets_ptr, out_ptr, BLOCK: tl.constexpr):
    """Rows of different lengths, one behind the other."""
    row = tl.program_id(0)
    first = tl.load(offsets_ptr + row)
    last = tl.load(offsets_ptr + row + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(values_ptr + index, mask=index < last, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, 0))
