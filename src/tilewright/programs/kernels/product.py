"""Matrix products as composites: operands streamed or loaded first, epilogues fused or apart."""

from typing import Any

from tilewright import language as tl

Tile = tuple[int, int, int]  # M, N, K


def product_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """out (m, n) = a (m, k) b (k, n). What is loaded first stays; the rest comes tile by tile."""
    a, b = _staged(a_ptr, (m, k), loads_a), _staged(b_ptr, (k, n), loads_b)
    tl.composite("gemm", a, b, out_ptr, tile_shape=tile)


def biased_product_kernel(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, bias_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """out = relu(a b + bias), each tile finished before its store."""
    a, b = _staged(a_ptr, (m, k), loads_a), _staged(b_ptr, (k, n), loads_b)
    epilogue = [("bias", tl.ref(bias_ptr, (n,))), "relu"]
    tl.composite("gemm", a, b, out_ptr, epilogue=epilogue, tile_shape=tile)


def biased_product_kernel_in_two(
    a_ptr: Any, b_ptr: Any, out_ptr: Any, bias_ptr: Any, m: int, n: int, k: int,
    loads_a: bool, loads_b: bool, tile: Tile,
) -> None:  # fmt: skip
    """The same in two passes over memory: the product goes out, comes back and is finished."""
    product_kernel(a_ptr, b_ptr, out_ptr, m, n, k, loads_a, loads_b, tile)
    out = tl.ref(out_ptr, (m, n))
    tl.composite("add", out, tl.ref(bias_ptr, (n,)), out, epilogue=["relu"], tile_shape=tile)


def _staged(pointer: Any, shape: tuple[int, int], is_loaded: bool) -> Any:
    return tl.load(pointer, shape=shape) if is_loaded else tl.ref(pointer, shape)
