"""Dropout whose mask comes from a seed, so that it is never stored."""

import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@triton.jit
def noise_kernel(normal_ptr, word_ptr, n_elements, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    a, b, c, d = tl.randint4x(seed, offsets)
    tl.store(normal_ptr + offsets, tl.randn(seed, offsets), mask=mask)
    tl.store(word_ptr + offsets, a ^ b ^ c ^ d ^ tl.randint(seed, offsets), mask=mask)
