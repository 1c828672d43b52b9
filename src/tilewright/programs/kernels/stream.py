"""The four loops of STREAM over a PE's own part of the arrays."""

from typing import Any

from tilewright import language as tl


def copy_kernel(a_ptr: Any, out_ptr: Any, size: int, block: int) -> None:
    """out = a"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        tl.store(out_ptr + first, tl.load(a_ptr + first, shape=shape))


def scale_kernel(a_ptr: Any, out_ptr: Any, factor: float, size: int, block: int) -> None:
    """out = factor a"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a = tl.load(a_ptr + first, shape=shape)
        tl.store(out_ptr + first, factor * a)


def add_kernel(a_ptr: Any, b_ptr: Any, out_ptr: Any, size: int, block: int) -> None:
    """out = a + b"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a, b = (tl.load(pointer + first, shape=shape) for pointer in (a_ptr, b_ptr))
        tl.store(out_ptr + first, a + b)


def triad_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, factor: float, size: int, block: int
) -> None:
    """out = a + factor b"""
    for first in range(0, size, block):
        shape = (min(block, size - first),)
        a, b = (tl.load(pointer + first, shape=shape) for pointer in (a_ptr, b_ptr))
        tl.store(out_ptr + first, a + factor * b)
