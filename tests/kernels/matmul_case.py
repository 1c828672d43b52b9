"""Cases of kernels that multiply matrices."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.kernels.argument import Addresses, Described
from tests.kernels.case import Array, KernelCase, rng_of

__all__ = ("MATMULS",)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def pair(name: str, m: int, n: int, k: int, dtype: Any) -> tuple[Array, Array]:
    rng = rng_of(name)
    return rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)


def strides(prefix: str, names: str, array: Array) -> dict[str, int]:
    steps = (step // array.itemsize for step in array.strides)
    return {f"stride_{prefix}{name}": step for name, step in zip(names, steps, strict=True)}


def grouped_arguments(dtype: Any, activation: str) -> dict[str, Any]:
    m, n, k = 80, 72, 40
    a, b = pair(f"grouped{np.dtype(dtype).name}", m, n, k, dtype)
    c = np.zeros((m, n), dtype)
    all_strides = strides("a", "mk", a) | strides("b", "kn", b) | strides("c", "mn", c)
    blocks = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 2}
    sizes = {"M": m, "N": n, "K": k, **all_strides, **blocks, "ACTIVATION": activation}
    return {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes, "num_warps": 4, "num_stages": 3}


def product_expected(given: dict[str, Any]) -> dict[str, Array]:
    product = wide(given["a_ptr"]) @ wide(given["b_ptr"])
    if given.get("ACTIVATION") == "leaky_relu":
        product = np.where(product >= 0, product, 0.01 * product)
    return {"c_ptr": product}


def grouped_case(dtype: Any, activation: str = "", *, in_triton: bool = True) -> KernelCase:
    name = f"matmul_{np.dtype(dtype).name}" + (f"_{activation}" if activation else "")
    arguments = partial(grouped_arguments, dtype, activation)
    return KernelCase(
        name, "matmul", "matmul_kernel", (9,), arguments, product_expected,
        runs_in_triton=in_triton,
    )  # fmt: skip


def split_k_arguments() -> dict[str, Any]:
    m, n, k = 40, 24, 100
    a, b = pair("split_k", m, n, k, np.float32)
    blocks = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16, "SPLIT_K": 4}
    c = np.zeros((m, n), np.float32)
    return {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k, **blocks}


def tile_arguments(dtype: Any, result: Any, name: str) -> dict[str, Any]:
    m, n, k = 48, 40, 56
    a, b = pair(name, m, n, k, dtype)
    blocks = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}
    return {
        "a_ptr": a,
        "b_ptr": b,
        "c_ptr": np.zeros((m, n), result),
        "M": m,
        "N": n,
        "K": k,
        **blocks,
    }


def descriptor_arguments() -> dict[str, Any]:
    given = tile_arguments(np.float16, np.float16, "descriptor")
    return given | {"b_ptr": np.ascontiguousarray(given["b_ptr"].T)}  # rows of B, as B transposed


def descriptor_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"c_ptr": wide(given["a_ptr"]) @ wide(given["b_ptr"]).T}


def scale_arguments() -> dict[str, Any]:
    x = rng_of("scale").normal(size=(40, 24)).astype(np.float32)
    arrays = {"_x": x, "_out": np.zeros((40, 24), np.float32)}
    descriptors = {"in_desc": Described("_x", (16, 16)), "out_desc": Described("_out", (16, 16))}
    return {**arrays, **descriptors, "factor": 3.0, "BLOCK_M": 16, "BLOCK_N": 16}


def scale_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"_out": 3.0 * wide(given["_x"])}


GROUPS = ((40, 24, 32), (16, 50, 20), (33, 17, 48))


def group_arguments() -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for number, (m, n, k) in enumerate(GROUPS):
        a, b = pair(f"group{number}", m, n, k, np.float16)
        zeros = np.zeros((m, n), np.float16)
        arrays |= {f"_a{number}": a, f"_b{number}": b, f"_c{number}": zeros}
    tables = {
        f"{letter}_table": Addresses(tuple(f"_{letter}{n}" for n in range(len(GROUPS))))
        for letter in "abc"
    }
    sizes = {"sizes_ptr": np.array(GROUPS, np.int32), "n_groups": len(GROUPS)}
    blocks = {"NUM_PROGRAMS": 4, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16}
    return {**arrays, **tables, **sizes, **blocks}


def group_expected(given: dict[str, Any]) -> dict[str, Array]:
    numbers = range(len(GROUPS))
    return {f"_c{n}": wide(given[f"_a{n}"]) @ wide(given[f"_b{n}"]) for n in numbers}


def dequantise_arguments() -> dict[str, Any]:
    m, n, k, group = 32, 32, 64, 32
    rng = rng_of("dequantise")
    codes = rng.integers(0, 16, (k, n)).astype(np.int64)
    packed = np.sum([codes[shift::8] << 4 * shift for shift in range(8)], axis=0) % 2**32
    blocks = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 32}
    sizes = {"M": m, "N": n, "K": k, "GROUP": group, **blocks}
    return {
        "a_ptr": rng.normal(size=(m, k)).astype(np.float16),
        "packed_ptr": packed.astype(np.uint32).view(np.int32),
        "scale_ptr": rng.uniform(0.01, 0.1, (k // group, n)).astype(np.float32),
        "zero_ptr": rng.integers(0, 16, (k // group, n)).astype(np.int32),
        "c_ptr": np.zeros((m, n), np.float16),
        **sizes,
    }


def dequantise_expected(given: dict[str, Any]) -> dict[str, Array]:
    words = given["packed_ptr"].view(np.uint32)
    k, group = given["K"], given["GROUP"]
    codes = np.stack([words >> 4 * shift & 15 for shift in range(8)], 1).reshape(k, -1)
    scale, zero = (np.repeat(given[name], group, 0) for name in ("scale_ptr", "zero_ptr"))
    weight = ((codes.astype(np.int64) - zero) * scale).astype(np.float16)
    return {"c_ptr": wide(given["a_ptr"]) @ wide(weight)}


def batched_arguments() -> dict[str, Any]:
    rng = rng_of("batched")
    a, b = rng.normal(size=(8, 16, 32)), rng.normal(size=(8, 32, 16))
    sizes = {"M": 16, "N": 16, "K": 32, "BATCH": 4}
    arrays = {"a_ptr": a.astype(np.float32), "b_ptr": b.astype(np.float32)}
    return {**arrays, "c_ptr": np.zeros((8, 16, 16), np.float32), **sizes}


def attention_arguments(dtype: Any, *, causal: bool) -> dict[str, Any]:
    heads, tokens, width = 2, 64, 32
    rng = rng_of(f"attention{np.dtype(dtype).name}")
    q, k, v = (rng.normal(size=(heads, tokens, width)).astype(dtype) for _ in range(3))
    outputs = {"Out": np.zeros_like(q), "Lse": np.zeros((heads, tokens), np.float32)}
    sizes = {"scale": width**-0.5, "stride_h": tokens * width, "stride_n": width, "N_CTX": tokens}
    blocks = {"CAUSAL": causal, "BLOCK_M": 32, "BLOCK_N": 16, "HEAD_DIM": width}
    return {"Q": q, "K": k, "V": v, **outputs, **sizes, **blocks}


def attention_expected(given: dict[str, Any]) -> dict[str, Array]:
    q, k, v = (wide(given[name]) for name in "QKV")
    scores = np.einsum("hmd,hnd->hmn", q, k) * given["scale"]
    if given["CAUSAL"]:
        scores = np.where(np.tri(given["N_CTX"], dtype=np.bool_), scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - largest)
    total = powers.sum(-1, keepdims=True)
    lse = (largest + np.log(total))[..., 0] * np.log2(np.e)
    return {"Out": powers / total @ v, "Lse": lse}


def attention_case(dtype: Any, *, causal: bool, in_triton: bool = True) -> KernelCase:
    kind = "causal" if causal else "full"
    return KernelCase(
        f"attention_{kind}_{np.dtype(dtype).name}", "flash_attention", "attention_kernel", (2, 2),
        partial(attention_arguments, dtype, causal=causal), attention_expected,
        runs_in_triton=in_triton,
    )  # fmt: skip


MATMULS: tuple[KernelCase, ...] = (
    grouped_case(np.float32),
    grouped_case(np.float16, "leaky_relu"),
    grouped_case(ml_dtypes.bfloat16, in_triton=False),
    KernelCase(
        "split_k", "split_k", "split_k_kernel", (2, 2, 4), split_k_arguments, product_expected
    ),
    KernelCase(
        "block_pointer",
        "block_pointer",
        "block_pointer_matmul_kernel",
        (2, 3),
        partial(tile_arguments, np.float16, np.float16, "block_pointer"),
        product_expected,
        runs_in_triton=False,
    ),
    KernelCase(
        "tensor_descriptor",
        "tensor_descriptor",
        "descriptor_matmul_kernel",
        (2, 3),
        descriptor_arguments,
        descriptor_expected,
    ),
    KernelCase(
        "host_descriptor",
        "tensor_descriptor",
        "scale_kernel",
        (3, 2),
        scale_arguments,
        scale_expected,
        exact=("_out",),
    ),
    KernelCase(
        "grouped_gemm", "grouped_gemm", "grouped_gemm_kernel", (4,), group_arguments, group_expected
    ),
    KernelCase(
        "dequantise",
        "dequantise",
        "dequantise_matmul_kernel",
        (2, 2),
        dequantise_arguments,
        dequantise_expected,
    ),
    KernelCase(
        "batched_matmul",
        "batched_matmul",
        "batched_matmul_kernel",
        (2,),
        batched_arguments,
        product_expected,
    ),
    attention_case(np.float32, causal=False),
    attention_case(np.float32, causal=True),
    attention_case(np.float16, causal=True),
    attention_case(ml_dtypes.bfloat16, causal=False, in_triton=False),
)
