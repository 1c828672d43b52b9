"""Cases of kernels that work element by element."""

import math
from typing import Any

import ml_dtypes
import numpy as np

from tests.kernels.case import Array, KernelCase, rng_of

__all__ = ("ELEMENTWISE",)


def add_arguments(dtype: Any, n: int = 1000) -> dict[str, Any]:
    rng = rng_of(f"add{np.dtype(dtype).name}")
    x, y = ((8 * rng.normal(size=n)).astype(dtype) for _ in range(2))
    out = np.zeros(n, dtype)
    return {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n_elements": n, "BLOCK_SIZE": 256}


def add_expected(given: dict[str, Any]) -> dict[str, Array]:
    total = given["x_ptr"].astype(np.float64) + given["y_ptr"].astype(np.float64)
    return {"out_ptr": total.astype(given["out_ptr"].dtype).astype(np.float64)}


def add_case(dtype: Any, *, in_triton: bool = True) -> KernelCase:
    name = f"vector_add_{np.dtype(dtype).name}"
    return KernelCase(
        name, "vector_add", "add_kernel", (4,), lambda: add_arguments(dtype), add_expected,
        exact=("out_ptr",) if in_triton else (), runs_in_triton=in_triton,
    )  # fmt: skip


def dropout_arguments() -> dict[str, Any]:
    x = rng_of("dropout").normal(size=500).astype(np.float32)
    shared = {"n_elements": 500, "p": 0.4, "seed": 123, "BLOCK_SIZE": 256}
    return {"x_ptr": x, "out_ptr": np.zeros(500, np.float32), **shared}


def philox_words(seed: int, offset: int) -> list[int]:
    counter, key = [offset, 0, 0, 0], [seed % 2**32, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            second >> 32 ^ counter[1] ^ key[0],
            second % 2**32,
            first >> 32 ^ counter[3] ^ key[1],
            first % 2**32,
        ]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def unit(word: int) -> float:
    return float(word if word < 2**31 else 2**32 - 1 - word) * 4.6566127342e-10


def dropout_expected(given: dict[str, Any]) -> dict[str, Array]:
    draws = np.array([unit(philox_words(given["seed"], n)[0]) for n in range(given["n_elements"])])
    kept = given["x_ptr"].astype(np.float64) / (1 - given["p"])
    return {"out_ptr": np.where(draws > given["p"], kept, 0.0)}


def noise_arguments() -> dict[str, Any]:
    n = 300
    outputs = {"normal_ptr": np.zeros(n, np.float32), "word_ptr": np.zeros(n, np.uint32)}
    return {**outputs, "n_elements": n, "seed": 2**33 + 5, "BLOCK_SIZE": 128}


def noise_expected(given: dict[str, Any]) -> dict[str, Array]:
    words = [philox_words(given["seed"], n) for n in range(given["n_elements"])]
    pairs = [(max(1e-7, unit(w[0])), unit(w[1])) for w in words]
    normal = [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in pairs]
    mixed = [w[1] ^ w[2] ^ w[3] for w in words]  # the first word meets itself
    return {"normal_ptr": np.array(normal), "word_ptr": np.array(mixed)}


def tuned_arguments() -> dict[str, Any]:
    x = rng_of("tuned").normal(size=300).astype(np.float32)
    return {"x_ptr": x, "out_ptr": np.zeros(300, np.float32), "n": 300, "factor": 1.5}


def tuned_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = given["x_ptr"].astype(np.float64)
    return {"out_ptr": 2 * x * x + 1 + given["factor"] * x * x + 3}


def activation_arguments() -> dict[str, Any]:
    n = 400
    x = (3 * rng_of("activation").normal(size=n)).astype(np.float16)
    narrow = {name: np.zeros(n, np.float16) for name in ("gelu_ptr", "silu_ptr")}
    wide = {name: np.zeros(n, np.float32) for name in ("soft_ptr", "wave_ptr")}
    return {"x_ptr": x, **narrow, **wide, "n": n, "BLOCK": 256}


def activation_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = given["x_ptr"].astype(np.float64)
    erf = np.array([math.erf(each) for each in x / math.sqrt(2)])
    wave = np.sin(x) * np.cos(x) + np.exp2(np.clip(x, -2, 2)) - np.log2(np.abs(x) + 1)
    wave += np.floor(x) * np.ceil(x) + np.sqrt(np.abs(x)) / np.sqrt(x * x + 1)
    return {
        "gelu_ptr": 0.5 * x * (1 + erf),
        "silu_ptr": x / (1 + np.exp(-x)),
        "soft_ptr": np.logaddexp(x, 0),
        "wave_ptr": 0.5 * wave + x,
    }


def integer_arguments() -> dict[str, Any]:
    rng = rng_of("integer")
    x = rng.integers(-(2**27), 2**27, 300).astype(np.int32)
    y = rng.integers(1, 2**10, 300).astype(np.int32) * rng.choice([-1, 1], 300).astype(np.int32)
    return {"x_ptr": x, "y_ptr": y, "out_ptr": np.zeros(300, np.int32), "n": 300, "BLOCK": 128}


def signed(value: int, bits: int) -> int:
    low = value % 2**bits
    return int(low - 2**bits) if low >= 2 ** (bits - 1) else int(low)


def integer_of(x: int, y: int) -> int:
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    mixed = signed(quotient + x - quotient * y, 32)
    bits = (signed(x << 3, 32) ^ (y >> 1)) & ~(x | 7)
    high = signed((x % 2**32) * (y % 2**32) >> 32, 32)
    chosen = mixed if x > y or x == -y else bits
    return (signed(chosen, 8) + -(-abs(x) // 3)) ^ high ^ min(x, y)


def integer_expected(given: dict[str, Any]) -> dict[str, Array]:
    pairs = zip(given["x_ptr"].tolist(), given["y_ptr"].tolist(), strict=True)
    return {"out_ptr": np.array([integer_of(x, y) for x, y in pairs])}


ELEMENTWISE: tuple[KernelCase, ...] = (
    add_case(np.float32),
    add_case(np.float64),
    add_case(np.float16),
    add_case(np.int32),
    add_case(ml_dtypes.bfloat16, in_triton=False),
    KernelCase(
        "dropout",
        "dropout",
        "dropout_kernel",
        (2,),
        dropout_arguments,
        dropout_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "noise",
        "dropout",
        "noise_kernel",
        (3,),
        noise_arguments,
        noise_expected,
        exact=("normal_ptr", "word_ptr"),
    ),
    KernelCase(
        "autotune_and_heuristics",
        "tuned",
        "scale_kernel",
        "grid",
        tuned_arguments,
        tuned_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "activation",
        "activation",
        "activation_kernel",
        (2,),
        activation_arguments,
        activation_expected,
        exact=("gelu_ptr", "silu_ptr", "soft_ptr", "wave_ptr"),
    ),
    KernelCase(
        "integer",
        "activation",
        "integer_kernel",
        (3,),
        integer_arguments,
        integer_expected,
        exact=("out_ptr",),
    ),
)
