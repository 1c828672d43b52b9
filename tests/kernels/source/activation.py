"""Functions of elements, casts and integer arithmetic in one kernel each."""

import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def activation_kernel(x_ptr, gelu_ptr, silu_ptr, soft_ptr, wave_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = gelu_ptr.dtype.element_ty
    tl.store(gelu_ptr + offsets, gelu(x).to(out), mask=mask)
    tl.store(silu_ptr + offsets, silu(x).to(out), mask=mask)
    tl.store(soft_ptr + offsets, tl.log(1.0 + tl.exp(-tl.abs(x))) + tl.maximum(x, 0.0), mask=mask)
    wave = tl.sin(x) * tl.cos(x) + tl.exp2(tl.clamp(x, -2.0, 2.0)) - tl.log2(tl.abs(x) + 1)
    wave = wave + tl.floor(x) * tl.ceil(x) + tl.sqrt(tl.abs(x)) * tl.rsqrt(x * x + 1)
    tl.store(wave_ptr + offsets, tl.fma(wave, 0.5, x), mask=mask)


@triton.jit
def integer_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1)
    y = tl.load(y_ptr + offsets, mask=mask, other=1)
    q = x // y + x % y
    bits = ((x << 3) ^ (y >> 1)) & ~(x | 7)
    high = tl.umulhi(x, y)
    chosen = tl.where((x > y) | (x == -y), q, bits)
    narrow = chosen.to(tl.int8).to(tl.int32) + tl.cdiv(tl.abs(x), 3)
    tl.store(out_ptr + offsets, narrow ^ high ^ tl.minimum(x, y), mask=mask)
