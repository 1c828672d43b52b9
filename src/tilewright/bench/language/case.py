"""What the language benchmark runs here and in Triton's interpreter."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class LanguageCase:
    """A kernel of ``tutorial_kernels`` with its sizes; ``arrays`` makes inputs and outputs."""

    name: str
    kernel: str
    grid: tuple[int, ...]
    arrays: Callable[[np.random.Generator], dict[str, Array]]
    numbers: dict[str, Any]
    output: str = "out_ptr"


def _normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _vector_add(rng: np.random.Generator) -> dict[str, Array]:
    n = 98_432
    return {"x_ptr": _normal(rng, n), "y_ptr": _normal(rng, n), "out_ptr": _zeros(n)}


def _softmax(rng: np.random.Generator) -> dict[str, Array]:
    return {"x_ptr": _normal(rng, 1823, 781), "out_ptr": _zeros(1823, 781)}


def _matmul(rng: np.random.Generator) -> dict[str, Array]:
    return {
        "a_ptr": _normal(rng, 512, 512),
        "b_ptr": _normal(rng, 512, 512),
        "out_ptr": _zeros(512, 512),
    }


def _layer_norm(rng: np.random.Generator) -> dict[str, Array]:
    return {
        "x_ptr": _normal(rng, 1151, 8192),
        "out_ptr": _zeros(1151, 8192),
        "weight_ptr": _normal(rng, 8192),
        "bias_ptr": _normal(rng, 8192),
        "mean_ptr": _zeros(1151),
        "rstd_ptr": _zeros(1151),
    }


def _attention(rng: np.random.Generator) -> dict[str, Array]:
    inputs = {name: _normal(rng, 4, 1024, 64) for name in ("q_ptr", "k_ptr", "v_ptr")}
    return {**inputs, "out_ptr": _zeros(4, 1024, 64)}


CASES: tuple[LanguageCase, ...] = (
    LanguageCase("vector_add", "add_kernel", (97,), _vector_add, {"n": 98_432, "BLOCK": 1024}),
    LanguageCase("softmax", "softmax_kernel", (1823,), _softmax, {"n_columns": 781, "BLOCK": 1024}),
    LanguageCase(
        "matmul",
        "matmul_kernel",
        (64,),
        _matmul,
        {"M": 512, "N": 512, "K": 512, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8},
    ),
    LanguageCase(
        "layer_norm", "layer_norm_kernel", (1151,), _layer_norm,
        {"N": 8192, "eps": 1e-5, "BLOCK": 8192},
    ),
    LanguageCase(
        "flash_attention",
        "attention_kernel",
        (16, 4),
        _attention,
        {"scale": 0.125, "N": 1024, "D": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    ),
)  # fmt: skip
