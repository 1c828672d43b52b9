"""Softmax and layer norm over rows that lie one after the other."""

from typing import Any

from tilewright import language as tl


def softmax_kernel(x_ptr: Any, out_ptr: Any, rows: int, columns: int, block_rows: int) -> None:
    """exp(x - max) over its sum, in each row."""
    for first in range(0, rows, block_rows):
        shape = (min(block_rows, rows - first), columns)
        x = tl.load(x_ptr + first * columns, shape=shape).to(tl.float32)
        weights = tl.exp(x - tl.max(x, 1)[:, None])
        scaled = weights * (1.0 / tl.sum(weights, 1))[:, None]
        tl.store(out_ptr + first * columns, scaled.to(out_ptr.dtype.element_ty))


def layer_norm_kernel(
    x_ptr: Any, weight_ptr: Any, bias_ptr: Any, out_ptr: Any,
    rows: int, columns: int, block_rows: int, eps: float,
) -> None:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) * weight + bias, in each row."""
    weight = tl.load(weight_ptr, shape=(columns,)).to(tl.float32)
    bias = tl.load(bias_ptr, shape=(columns,)).to(tl.float32)
    for first in range(0, rows, block_rows):
        shape = (min(block_rows, rows - first), columns)
        x = tl.load(x_ptr + first * columns, shape=shape).to(tl.float32)
        centred = x - (tl.sum(x, 1) / columns)[:, None]
        scale = tl.rsqrt(tl.sum(centred * centred, 1) / columns + eps)
        normed = centred * scale[:, None] * weight[None, :] + bias[None, :]
        tl.store(out_ptr + first * columns, normed.to(out_ptr.dtype.element_ty))
