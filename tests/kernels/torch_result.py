"""What torch computes in bf16, which Triton's interpreter gets wrong."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tests.kernels.case import Array

__all__ = ("IN_TORCH",)

Results = dict[str, Array]


def tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)


def array_of(result: torch.Tensor) -> Array:
    if result.dtype is not torch.bfloat16:
        return result.numpy()
    return result.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)


def add(given: dict[str, Any]) -> Results:
    return {"out_ptr": array_of(tensor(given["x_ptr"]) + tensor(given["y_ptr"]))}


def matmul(given: dict[str, Any]) -> Results:
    product = tensor(given["a_ptr"]).float() @ tensor(given["b_ptr"]).float()
    return {"c_ptr": array_of(product.to(torch.bfloat16))}


def layer_norm(given: dict[str, Any]) -> Results:
    x, weight, bias = (tensor(given[name]) for name in ("X", "W", "B"))
    y = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, given["eps"])
    return {"Y": array_of(y)}


def attention(given: dict[str, Any]) -> Results:
    q, k, v = (tensor(given[name]) for name in "QKV")
    function = torch.nn.functional.scaled_dot_product_attention
    return {"Out": array_of(function(q, k, v, is_causal=given["CAUSAL"], scale=given["scale"]))}


IN_TORCH: dict[str, Callable[[dict[str, Any]], Results]] = {
    "vector_add_bfloat16": add,
    "matmul_bfloat16": matmul,
    "layer_norm_bfloat16": layer_norm,
    "attention_full_bfloat16": attention,
}
