"""Product with a weight of four bits: eight to a word, a scale and a zero point per group of K."""

import triton
import triton.language as tl


@triton.jit
def dequantise_matmul_kernel(
    a_ptr, packed_ptr, scale_ptr, zero_ptr, c_ptr, M, N, K, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    shifts = (offs_k % 8) * 4
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * K + k + offs_k[None, :])
        words = tl.load(packed_ptr + ((k + offs_k) // 8)[:, None] * N + offs_n[None, :])
        codes = (words >> shifts[:, None]) & 0xF
        group = ((k + offs_k) // GROUP)[:, None] * N + offs_n[None, :]
        scale = tl.load(scale_ptr + group)
        zero = tl.load(zero_ptr + group)
        b = ((codes - zero).to(tl.float32) * scale).to(a.dtype)
        acc = tl.dot(a, b, acc)
    mask = offs_m[:, None] < M
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=mask)
