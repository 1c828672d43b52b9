"""Attention without the matrix of scores: a running maximum and a running sum per row."""

import triton
import triton.language as tl


@triton.jit
def attend_blocks(
    acc,
    l_i,
    m_i,
    q,
    k_ptrs,
    v_ptrs,
    stride_kn,
    stride_vn,
    offs_m,
    offs_n,
    low,
    high,
    MASKED: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    for start in range(low, high, BLOCK_N):
        k = tl.load(k_ptrs + start * stride_kn)
        scores = tl.dot(q, k)
        if MASKED:
            visible = offs_m[:, None] >= (start + offs_n[None, :])
            scores = tl.where(visible, scores, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(scores, 1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_ptrs + start * stride_vn)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def attention_kernel(
    Q,
    K,
    V,
    Out,
    Lse,
    scale,
    stride_h,
    stride_n,
    N_CTX,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    start_m = tl.program_id(0)
    head = tl.program_id(1)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    base = head * stride_h
    q = tl.load(Q + base + offs_m[:, None] * stride_n + offs_d[None, :])
    q = (q * (scale * 1.44269504)).to(q.dtype)
    k_ptrs = K + base + offs_n[None, :] * stride_n + offs_d[:, None]
    v_ptrs = V + base + offs_n[:, None] * stride_n + offs_d[None, :]
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    if CAUSAL:
        diagonal = start_m * BLOCK_M
        acc, l_i, m_i = attend_blocks(
            acc,
            l_i,
            m_i,
            q,
            k_ptrs,
            v_ptrs,
            stride_n,
            stride_n,
            offs_m,
            offs_n,
            0,
            diagonal,
            False,
            BLOCK_N,
        )
        acc, l_i, m_i = attend_blocks(
            acc,
            l_i,
            m_i,
            q,
            k_ptrs,
            v_ptrs,
            stride_n,
            stride_n,
            offs_m,
            offs_n,
            diagonal,
            diagonal + BLOCK_M,
            True,
            BLOCK_N,
        )
    else:
        acc, l_i, m_i = attend_blocks(
            acc,
            l_i,
            m_i,
            q,
            k_ptrs,
            v_ptrs,
            stride_n,
            stride_n,
            offs_m,
            offs_n,
            0,
            N_CTX,
            False,
            BLOCK_N,
        )
    acc = acc / l_i[:, None]
    tl.store(Lse + head * N_CTX + offs_m, m_i + tl.log2(l_i))
    out_ptrs = Out + base + offs_m[:, None] * stride_n + offs_d[None, :]
    tl.store(out_ptrs, acc.to(Out.dtype.element_ty))
