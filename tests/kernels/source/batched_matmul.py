"""Products of batches of matrices, several in one block."""

import triton
import triton.language as tl


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BATCH: tl.constexpr
):
    batch = tl.program_id(0) * BATCH + tl.arange(0, BATCH)
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + batch[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + batch[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
    c = tl.dot(a, b)
    tl.store(c_ptr + batch[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :], c)
