"""Kernels as users write them: helpers, constants, decorators."""

import triton
import triton.language as tl
from triton.language import float32, load, store

from tests.kernels.source import user_helper as helper
from tests.kernels.source.user_helper import cooled

OFFSET: tl.constexpr = 5
PLAIN = 7
FOUR = tl.constexpr(4)


@triton.jit
def by_modules(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    x = helper.scaled(tl.load(x_ptr + n), by=1) + helper.SCALE
    tl.store(out_ptr + n, x)


@triton.jit
def by_names(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    store(out_ptr + n, cooled(load(x_ptr + n)).to(float32))


@triton.jit
def by_constants(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr = 4):
    n = tl.arange(0, triton.next_power_of_2(N))
    y = tl.load(x_ptr + n, mask=n < N) * K + OFFSET + PLAIN + triton.cdiv(N, 3)
    tl.store(out_ptr + n, y, mask=n < N)


@triton.jit
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@triton.jit
def by_recursion(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    tl.store(out_ptr + n, tl.load(x_ptr + n) * factorial(5))


@triton.jit
def by_defaults(
    x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr = FOUR,
    KIND: tl.constexpr = tl.float32, FUNCTION: tl.constexpr = cooled,
):  # fmt: skip
    n = tl.arange(0, N)
    tl.store(out_ptr + n, FUNCTION(tl.load(x_ptr + n)).to(KIND) * K)


def make_kernel(shift, operation):
    @triton.jit
    def inside(x):
        return operation(x) + shift

    @triton.jit
    def closed(x_ptr, out_ptr, N: tl.constexpr):
        n = tl.arange(0, N)
        tl.store(out_ptr + n, inside(tl.load(x_ptr + n)))

    return closed


by_closure = make_kernel(11, tl.abs)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 16, "FACTOR": 3}, num_warps=4),
        triton.Config({"BLOCK": 32, "FACTOR": 5}),
    ],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def by_decorators(x_ptr, out_ptr, n, BLOCK: tl.constexpr, FACTOR: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * FACTOR + EVEN, mask=mask)


def needs_a_hook(config):
    return config


hooked = triton.autotune(configs=[triton.Config({"N": 16}, pre_hook=needs_a_hook)], key=[])(
    by_names
)
