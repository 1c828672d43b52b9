"""A user's module of helpers, of which a kernel elsewhere uses some by the module's name."""

import triton
import triton.language as tl

SCALE = tl.constexpr(3)


@triton.jit
def scaled(x, by: tl.constexpr = 2):
    return x * by * SCALE


@triton.jit
def cooled(x):
    return scaled(x) + tl.cdiv(7, 2)
