"""Cases of kernels that work along rows: norms, scans, sorts, reductions, gathers."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.kernels.case import Array, KernelCase, rng_of

__all__ = ("ROWS",)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def softmax_arguments() -> dict[str, Any]:
    x = (4 * rng_of("softmax").normal(size=(7, 100))).astype(np.float32)
    sizes = {"in_stride": 100, "out_stride": 100, "n_rows": 7, "n_cols": 100, "BLOCK_SIZE": 128}
    return {"out_ptr": np.zeros_like(x), "in_ptr": x, **sizes}


def softmax_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = wide(given["in_ptr"])
    powers = np.exp(x - x.max(1, keepdims=True))
    return {"out_ptr": powers / powers.sum(1, keepdims=True)}


def layer_norm_arguments(dtype: Any) -> dict[str, Any]:
    rng = rng_of("layer_norm")
    x = (3 * rng.normal(size=(5, 200)) + 1).astype(dtype)
    w, b = rng.uniform(size=200).astype(dtype), rng.normal(size=200).astype(dtype)
    moments = {name: np.zeros(5, np.float32) for name in ("Mean", "Rstd")}
    sizes = {"stride": 200, "N": 200, "eps": 1e-5, "BLOCK_SIZE": 64}
    return {"X": x, "Y": np.zeros_like(x), "W": w, "B": b, **moments, **sizes}


def layer_norm_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = wide(given["X"])
    mean = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + given["eps"])
    y = (x - mean) * rstd * wide(given["W"]) + wide(given["B"])
    return {"Y": y, "Mean": mean[:, 0], "Rstd": rstd[:, 0]}


def rms_arguments(dtype: Any) -> dict[str, Any]:
    tokens, heads, width = 3, 2, 32
    rng = rng_of("rms")
    angles = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    arrays = {
        "x_ptr": rng.normal(size=(tokens, heads, width)).astype(dtype),
        "weight_ptr": rng.uniform(0.5, 1.5, width).astype(dtype),
        "cos_ptr": np.cos(angles).astype(np.float32),
        "sin_ptr": np.sin(angles).astype(np.float32),
        "out_ptr": np.zeros((tokens, heads, width), np.float16),
    }
    return {**arrays, "n_heads": heads, "EPS": 1e-6, "HEAD_DIM": width}


def rms_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = wide(given["x_ptr"])
    normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + given["EPS"]) * wide(given["weight_ptr"])
    low, high = np.split(normed, 2, -1)
    cos, sin = (wide(given[name])[:, None, :] for name in ("cos_ptr", "sin_ptr"))
    return {"out_ptr": np.concatenate((low * cos - high * sin, high * cos + low * sin), -1)}


def scan_arguments() -> dict[str, Any]:
    rng = rng_of("scan")
    x = rng.normal(size=(8, 32)).astype(np.float32)
    decay = rng.uniform(0.5, 1.2, (8, 32)).astype(np.float32)
    names = ("sum_ptr", "back_ptr", "product_ptr", "state_ptr")
    outputs = {name: np.zeros_like(x) for name in names}
    return {"x_ptr": x, "decay_ptr": decay, **outputs, "n_cols": 32, "COLS": 32, "ROWS": 4}


def scan_expected(given: dict[str, Any]) -> dict[str, Array]:
    x, decay = wide(given["x_ptr"]), wide(given["decay_ptr"])
    state = np.zeros_like(x)
    for column in range(x.shape[1]):
        before = state[:, column - 1] if column else 0
        state[:, column] = decay[:, column] * before + x[:, column]
    return {
        "sum_ptr": x.cumsum(1),
        "back_ptr": x[:, ::-1].cumsum(1)[:, ::-1],
        "product_ptr": decay.cumprod(1),
        "state_ptr": state,
    }


def top_k_arguments() -> dict[str, Any]:
    x = rng_of("top_k").integers(-20, 20, (4, 50)).astype(np.float32)  # with many ties
    outputs = {"value_ptr": np.zeros((4, 8), np.float32), "index_ptr": np.zeros((4, 8), np.int32)}
    return {"x_ptr": x, **outputs, "n_cols": 50, "BLOCK": 64, "K": 8}


def top_k_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = given["x_ptr"]
    order = np.argsort(-x, axis=1, kind="stable")[:, : given["K"]]
    return {"value_ptr": wide(np.take_along_axis(x, order, 1)), "index_ptr": order}


def top_values_arguments() -> dict[str, Any]:
    x = rng_of("top_values").normal(size=(2, 32)).astype(np.float32)
    return {"x_ptr": x, "out_ptr": np.zeros((2, 4), np.float32), "BLOCK": 32, "K": 4}


def top_values_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"out_ptr": -np.sort(-wide(given["x_ptr"]), 1)[:, : given["K"]]}


def embedding_arguments() -> dict[str, Any]:
    rng = rng_of("embedding")
    table = rng.normal(size=(50, 24)).astype(np.float16)
    index = rng.integers(0, 50, 20).astype(np.int64)
    sizes = {"n_tokens": 20, "width": 24, "TOKENS": 16, "WIDTH": 32}
    return {
        "index_ptr": index,
        "table_ptr": table,
        "out_ptr": np.zeros((20, 24), np.float16),
        **sizes,
    }


def embedding_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"out_ptr": wide(given["table_ptr"][given["index_ptr"]])}


def shuffle_arguments() -> dict[str, Any]:
    rng = rng_of("shuffle_index")
    x = rng.normal(size=(8, 16)).astype(np.float32)
    index = rng.integers(0, 16, (8, 16)).astype(np.int32)
    return {"x_ptr": x, "index_ptr": index, "out_ptr": np.zeros_like(x), "ROWS": 8, "COLS": 16}


def shuffle_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"out_ptr": wide(np.take_along_axis(given["x_ptr"], given["index_ptr"], 1))}


def moments_arguments() -> dict[str, Any]:
    x = (5 * rng_of("moments").normal(size=(3, 64)) + 2).astype(np.float32)
    return {
        "x_ptr": x,
        "mean_ptr": np.zeros(3, np.float32),
        "var_ptr": np.zeros(3, np.float32),
        "COLS": 64,
    }


def moments_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = wide(given["x_ptr"])
    return {"mean_ptr": x.mean(1), "var_ptr": x.var(1)}


def extremes_arguments() -> dict[str, Any]:
    x = rng_of("extremes").integers(-50, 50, (8, 32)).astype(np.int32)
    rows = {name: np.zeros(8, np.int32) for name in ("best_ptr", "where_ptr", "least_ptr")}
    return {"x_ptr": x, **rows, "parity_ptr": np.zeros(32, np.int32), "ROWS": 8, "COLS": 32}


def extremes_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = given["x_ptr"]
    return {
        "best_ptr": x.max(1),
        "where_ptr": x.argmax(1),
        "least_ptr": x.argmin(1),
        "parity_ptr": np.bitwise_xor.reduce(x, 0),
    }


def entropy_arguments() -> dict[str, Any]:
    rng = rng_of("entropy")
    logits = (4 * rng.normal(size=(6, 90))).astype(np.float16)
    labels = np.array([3, 89, -100, 0, 45, 12], np.int64)
    sizes = {"n_classes": 90, "IGNORED": -100, "BLOCK": 32}
    return {
        "logits_ptr": logits,
        "labels_ptr": labels,
        "loss_ptr": np.zeros(6, np.float32),
        **sizes,
    }


def entropy_expected(given: dict[str, Any]) -> dict[str, Array]:
    x, labels = wide(given["logits_ptr"]), given["labels_ptr"]
    chosen = np.take_along_axis(x, np.maximum(labels, 0)[:, None], 1)[:, 0]
    loss = np.log(np.exp(x).sum(1)) - chosen
    return {"loss_ptr": np.where(labels == given["IGNORED"], 0.0, loss)}


def moving_arguments() -> dict[str, Any]:
    rng = rng_of("moving")
    x, y = (rng.normal(size=(8, 16)).astype(np.float32) for _ in range(2))
    outputs = {
        "trans_ptr": (16, 8), "pairs_ptr": (8, 32), "odd_ptr": (8, 8), "flip_ptr": (8, 16),
        "cat_ptr": (256,), "outer_ptr": (2, 8, 16),
    }  # fmt: skip
    arrays = {name: np.zeros(shape, np.float32) for name, shape in outputs.items()}
    return {"x_ptr": x, "y_ptr": y, **arrays, "ROWS": 8, "COLS": 16}


def moving_expected(given: dict[str, Any]) -> dict[str, Array]:
    x, y = wide(given["x_ptr"]), wide(given["y_ptr"])
    sums = np.broadcast_to(x.sum(1, keepdims=True), x.shape)
    return {
        "trans_ptr": x.T,
        "pairs_ptr": np.stack((x, y), -1).reshape(8, 32),
        "odd_ptr": x[:, 1::2] - x[:, ::2],
        "flip_ptr": x[:, ::-1],
        "cat_ptr": np.concatenate((x.ravel(), y.ravel())),
        "outer_ptr": np.stack((sums, y)),
    }


ROWS: tuple[KernelCase, ...] = (
    KernelCase(
        "softmax",
        "softmax",
        "softmax_kernel",
        (3,),
        softmax_arguments,
        softmax_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "layer_norm_float32",
        "layer_norm",
        "layer_norm_kernel",
        (5,),
        partial(layer_norm_arguments, np.float32),
        layer_norm_expected,
        exact=("Y", "Mean", "Rstd"),
    ),
    KernelCase(
        "layer_norm_bfloat16",
        "layer_norm",
        "layer_norm_kernel",
        (5,),
        partial(layer_norm_arguments, ml_dtypes.bfloat16),
        layer_norm_expected,
        runs_in_triton=False,
    ),
    KernelCase(
        "rms_norm_rope",
        "rms_norm_rope",
        "rms_norm_rope_kernel",
        (3, 2),
        partial(rms_arguments, np.float16),
        rms_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "scan",
        "scan",
        "scan_kernel",
        (2,),
        scan_arguments,
        scan_expected,
        exact=("sum_ptr", "back_ptr", "product_ptr"),
    ),
    KernelCase(
        "top_k",
        "top_k",
        "top_k_kernel",
        (4,),
        top_k_arguments,
        top_k_expected,
        exact=("value_ptr", "index_ptr"),
    ),
    KernelCase(
        "top_values",
        "top_k",
        "top_values_kernel",
        (2,),
        top_values_arguments,
        top_values_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "embedding",
        "gather",
        "embedding_kernel",
        (2,),
        embedding_arguments,
        embedding_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "shuffle",
        "gather",
        "shuffle_kernel",
        (1,),
        shuffle_arguments,
        shuffle_expected,
        exact=("out_ptr",),
    ),
    KernelCase("moments", "reduction", "moments_kernel", (3,), moments_arguments, moments_expected),
    KernelCase(
        "extremes",
        "reduction",
        "extremes_kernel",
        (1,),
        extremes_arguments,
        extremes_expected,
        exact=("best_ptr", "where_ptr", "least_ptr", "parity_ptr"),
    ),
    KernelCase(
        "cross_entropy",
        "cross_entropy",
        "cross_entropy_kernel",
        (6,),
        entropy_arguments,
        entropy_expected,
        exact=("loss_ptr",),
    ),
    KernelCase(
        "moving",
        "shuffle",
        "shuffle_kernel",
        (1,),
        moving_arguments,
        moving_expected,
        exact=("trans_ptr", "pairs_ptr", "odd_ptr", "flip_ptr", "cat_ptr", "outer_ptr"),
    ),
)
