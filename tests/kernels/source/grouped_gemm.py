"""Several products of different sizes in one launch; sizes and addresses come from tables."""

import triton
import triton.language as tl


@triton.jit
def grouped_gemm_kernel(
    a_table, b_table, c_table, sizes_ptr, n_groups, NUM_PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    first = 0
    for group in range(n_groups):
        M = tl.load(sizes_ptr + group * 3)
        N = tl.load(sizes_ptr + group * 3 + 1)
        K = tl.load(sizes_ptr + group * 3 + 2)
        n_tiles_n = tl.cdiv(N, BLOCK_N)
        last = first + tl.cdiv(M, BLOCK_M) * n_tiles_n
        while tile >= first and tile < last:
            a_ptr = tl.load(a_table + group).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_table + group).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_table + group).to(tl.pointer_type(tl.float16))
            inside = tile - first
            offs_m = (inside // n_tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = (inside % n_tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                rows = (offs_m[:, None] < M) & (k + offs_k[None, :] < K)
                columns = (k + offs_k[:, None] < K) & (offs_n[None, :] < N)
                a = tl.load(a_ptr + offs_m[:, None] * K + k + offs_k[None, :], mask=rows, other=0.0)
                b = tl.load(
                    b_ptr + (k + offs_k[:, None]) * N + offs_n[None, :], mask=columns, other=0.0
                )
                acc += tl.dot(a, b)
            mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
            tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=mask)
            tile += NUM_PROGRAMS
        first = last
