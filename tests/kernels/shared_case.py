"""Cases of kernels whose programs share words, or whose course depends on data."""

from itertools import pairwise
from typing import Any

import numpy as np

from tests.kernels.case import Array, KernelCase, rng_of

__all__ = ("SHARED",)


def histogram_arguments() -> dict[str, Any]:
    x = rng_of("histogram").integers(0, 20, 500).astype(np.int32)
    return {
        "x_ptr": x,
        "out_ptr": np.zeros(16, np.int32),
        "n_elements": 500,
        "BLOCK": 256,
        "BINS": 16,
    }


def histogram_expected(given: dict[str, Any]) -> dict[str, Array]:
    return {"out_ptr": np.bincount(given["x_ptr"], minlength=16)[:16]}


def atomic_arguments() -> dict[str, Any]:
    x = rng_of("atomic").integers(-1000, 1000, 6).astype(np.int32)
    words = np.array([0, -(2**31), 2**31 - 1, -1, 0, 0, 0], np.int32)
    floats = np.concatenate((np.zeros(4), [-1e30])).astype(np.float32)
    old = np.concatenate((np.zeros(6), np.arange(6) + 70)).astype(np.int32)
    return {"x_ptr": x, "words_ptr": words, "old_ptr": old, "f_ptr": floats, "BLOCK": 4}


def atomic_expected(given: dict[str, Any]) -> dict[str, Array]:
    x = given["x_ptr"].astype(np.int64)
    bits = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    words = [x.sum(), x.max(), x.min(), *(each.reduce(x) for each in bits), 1]
    floats = [x.sum()] * 3 + [0, x.max()]
    return {
        "words_ptr": np.array(words),
        "old_ptr": np.concatenate((np.arange(6) + 70, x)),
        "f_ptr": np.array(floats, np.float64),
    }


STARTS = (1, 6, 7, 27, 97)


def collatz_arguments() -> dict[str, Any]:
    start = np.array(STARTS, np.int32)
    return {"start_ptr": start, "steps_ptr": np.zeros_like(start), "peak_ptr": np.zeros_like(start)}


def collatz_expected(_: dict[str, Any]) -> dict[str, Array]:
    steps, peaks = [], []
    for n in STARTS:
        path = [n]
        while path[-1] > 1:
            path.append(path[-1] // 2 if path[-1] % 2 == 0 else 3 * path[-1] + 1)
        steps.append(len(path) - 1)
        peaks.append(max(path))
    return {"steps_ptr": np.array(steps), "peak_ptr": np.array(peaks)}


def ragged_arguments() -> dict[str, Any]:
    rng = rng_of("ragged")
    offsets = np.array([0, 5, 5, 40, 100, 101], np.int32)
    values = rng.normal(size=offsets[-1]).astype(np.float32)
    return {
        "values_ptr": values,
        "offsets_ptr": offsets,
        "out_ptr": np.zeros(5, np.float32),
        "BLOCK": 16,
    }


def ragged_expected(given: dict[str, Any]) -> dict[str, Array]:
    values, offsets = given["values_ptr"].astype(np.float64), given["offsets_ptr"]
    return {"out_ptr": np.array([values[first:last].sum() for first, last in pairwise(offsets)])}


SHARED: tuple[KernelCase, ...] = (
    KernelCase(
        "histogram",
        "histogram",
        "histogram_kernel",
        (2,),
        histogram_arguments,
        histogram_expected,
        exact=("out_ptr",),
    ),
    KernelCase(
        "atomic",
        "atomic",
        "atomic_kernel",
        (6,),
        atomic_arguments,
        atomic_expected,
        exact=("words_ptr", "old_ptr"),
    ),
    KernelCase(
        "collatz",
        "control_flow",
        "collatz_kernel",
        (5,),
        collatz_arguments,
        collatz_expected,
        exact=("steps_ptr", "peak_ptr"),
    ),
    KernelCase(
        "ragged_sum",
        "control_flow",
        "ragged_sum_kernel",
        (5,),
        ragged_arguments,
        ragged_expected,
        exact=("out_ptr",),
    ),
)
