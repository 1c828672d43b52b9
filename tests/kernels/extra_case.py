"""Kernels of ``source/op.py`` that are no functions of elements: what goes in and must come out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.kernels.case import Array
from tests.kernels.op_case import run_meaning

__all__ = ("EXTRAS", "ExtraCase")


@dataclass(frozen=True, slots=True)
class ExtraCase:
    """``out_ptr`` of the kernel holds ``expected()`` after a run with ``arguments()``."""

    name: str
    kernel: str
    arguments: Callable[[], dict[str, Any]]
    expected: Callable[[], Array]
    tolerance: float = 0.0


def word_arguments() -> dict[str, Any]:
    x = np.arange(16, dtype=np.int32)
    return {"x_ptr": x, "out_ptr": np.zeros_like(x), "N": 16}


def tile_arguments() -> dict[str, Any]:
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    return {"x_ptr": x, "out_ptr": np.zeros_like(x), "R": 8, "C": 16}


def scaled_arguments(left: str, right: str) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    m, n, k = 16, 16, 64
    packs = [2 if name == "e2m1" else 1 for name in (left, right)]
    a = rng.integers(0, 120, (m, k // packs[0])).astype(np.uint8)
    b = rng.integers(0, 120, (k // packs[1], n)).astype(np.uint8)
    scales = [rng.integers(120, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    pointers = {"a_ptr": a, "a_scale_ptr": scales[0], "b_ptr": b, "b_scale_ptr": scales[1]}
    sizes = {"M": m, "N": n, "K": k, "K_A": k // packs[0], "K_B": k // packs[1]}
    out = {"out_ptr": np.zeros((m, n), np.float32), "LEFT": left, "RIGHT": right}
    return {**pointers, **out, **sizes}


def scaled_product(left: str, right: str) -> Array:
    given = scaled_arguments(left, right)
    operands = [given[name] for name in ("a_ptr", "a_scale_ptr", "b_ptr", "b_scale_ptr")]
    attributes = (left, right, True, True, True, True, None)
    return np.asarray(run_meaning("dot_scaled", *operands, attributes=attributes))


def scaled_case(left: str, right: str) -> ExtraCase:
    return ExtraCase(
        f"scaled_dot_{left}_{right}",
        "scaled_dot_kernel",
        lambda: scaled_arguments(left, right),
        lambda: scaled_product(left, right),
        1e-6,
    )


EXTRAS: tuple[ExtraCase, ...] = (
    ExtraCase(
        "atomic_load_store",
        "atomic_load_store_kernel",
        word_arguments,
        lambda: 2 * np.arange(16, dtype=np.int32),
    ),
    ExtraCase(
        "descriptor_functions",
        "descriptor_function_kernel",
        tile_arguments,
        lambda: np.arange(128, dtype=np.float32).reshape(8, 16) + 1,
    ),
    scaled_case("e2m1", "e2m1"),
    scaled_case("e4m3", "e2m1"),
    scaled_case("e5m2", "e4m3"),
)
