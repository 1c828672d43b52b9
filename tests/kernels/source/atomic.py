"""Atomics of every kind on shared words."""

import triton
import triton.language as tl


@triton.jit
def atomic_kernel(x_ptr, words_ptr, old_ptr, f_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    tl.atomic_add(words_ptr + 0, x)
    tl.atomic_max(words_ptr + 1, x)
    tl.atomic_min(words_ptr + 2, x)
    tl.atomic_and(words_ptr + 3, x)
    tl.atomic_or(words_ptr + 4, x)
    tl.atomic_xor(words_ptr + 5, x)
    tl.atomic_cas(words_ptr + 6, 0, pid + 1)
    tl.atomic_add(f_ptr + tl.arange(0, BLOCK), x.to(tl.float32), mask=tl.arange(0, BLOCK) < 3)
    tl.atomic_max(f_ptr + BLOCK, x.to(tl.float32))
    tl.store(old_ptr + pid, tl.atomic_xchg(old_ptr + tl.num_programs(0) + pid, x))
