"""RMS norm of a head, then the rotary embedding of its position."""

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, width, eps: tl.constexpr):
    variance = tl.sum(x * x, axis=0) / width
    return x * tl.rsqrt(variance + eps) * weight


@triton.jit
def rms_norm_rope_kernel(
    x_ptr, weight_ptr, cos_ptr, sin_ptr, out_ptr, n_heads, EPS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):  # fmt: skip
    token, head = tl.program_id(0), tl.program_id(1)
    half: tl.constexpr = HEAD_DIM // 2
    base = (token * n_heads + head) * HEAD_DIM
    x = tl.load(x_ptr + base + tl.arange(0, HEAD_DIM)).to(tl.float32)
    weight = tl.load(weight_ptr + tl.arange(0, HEAD_DIM)).to(tl.float32)
    normed = rms_norm(x, weight, HEAD_DIM, EPS)
    low, high = tl.split(tl.trans(tl.reshape(normed, (2, half))))
    cos = tl.load(cos_ptr + token * half + tl.arange(0, half))
    sin = tl.load(sin_ptr + token * half + tl.arange(0, half))
    tl.store(out_ptr + base + tl.arange(0, half), (low * cos - high * sin).to(tl.float16))
    tl.store(out_ptr + base + half + tl.arange(0, half), (high * cos + low * sin).to(tl.float16))
