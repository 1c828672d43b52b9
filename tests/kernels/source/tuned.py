"""Decorators: a tuned block size, heuristics, a default argument, helpers that call helpers."""

import triton
import triton.language as tl


@triton.jit
def square(x):
    return x * x


@triton.jit
def scaled_square(x, factor=2.0, OFFSET: tl.constexpr = 1):
    return square(x) * factor + OFFSET


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=2),
        triton.Config({"BLOCK": 128}, num_warps=4, num_stages=3),
    ],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    y = scaled_square(x) + scaled_square(x, factor, OFFSET=3)
    tl.store(out_ptr + offsets, y, mask=offsets < n)
