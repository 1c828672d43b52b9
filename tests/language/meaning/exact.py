"""Results worked out another way: f64 rounded once by arithmetic, integers by Python's."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.language.dtype import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
)
from tilewright.language.meaning.bound import Array

__all__ = ("as_float64", "of_python", "round_float", "ulp", "wrap_int")

# bits after the point, smallest exponent of a normal, largest finite
FORMATS: dict[DType, tuple[int, int, float]] = {
    float32: (23, -126, (2 - 2.0**-23) * 2.0**127),
    float16: (10, -14, 65504.0),
    bfloat16: (7, -126, (2 - 2.0**-7) * 2.0**127),
    float8e4nv: (3, -6, 448.0),
    float8e5: (2, -14, 57344.0),
}


def as_float64(array: Array) -> Array:
    with np.errstate(all="ignore"):  # a signalling NaN is quiet afterwards
        return np.asarray(array).astype(np.float64)


def _quantum(values: Array, dtype: DType) -> Array:
    """The distance of neighbours in ``dtype`` around each value."""
    bits, lowest, _ = FORMATS[dtype]
    exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, lowest) - bits))


def round_float(values: Array, dtype: DType) -> Array:
    """f64 values as ``dtype`` has them: nearest, ties to even, as f64 again."""
    if dtype is float64:
        return values
    largest = FORMATS[dtype][2]
    quantum = _quantum(values, dtype)
    with np.errstate(all="ignore"):
        rounded = np.where(np.isfinite(values), np.rint(values / quantum) * quantum, values)
    beyond = largest if dtype is float8e4nv else np.inf
    return np.where(np.abs(rounded) > largest, np.copysign(beyond, values), rounded)


def ulp(values: Array, dtype: DType) -> Array:
    """One unit in the last place of ``dtype`` at each value."""
    if dtype is float64:
        return np.spacing(np.abs(np.where(np.isfinite(values), values, 1.0)))
    return _quantum(round_float(values, dtype), dtype)


def wrap_int(value: int, dtype: DType) -> int:
    """The integer of ``dtype`` with the same low bits."""
    low = value % 2**dtype.int_bitwidth
    return int(low - 2**dtype.int_bitwidth) if low > dtype.get_int_max_value() else int(low)


def of_python(function: Callable[..., int], dtype: DType, *operands: Array) -> Array:
    """``function`` on Python's integers, wrapped to ``dtype``."""
    broad = np.broadcast_arrays(*(np.asarray(each).astype(object) for each in operands))
    flat = [each.ravel() for each in broad]
    wrapped: list[Any] = [
        wrap_int(int(function(*map(int, numbers))), dtype) for numbers in zip(*flat, strict=True)
    ]
    return np.array(wrapped, object).reshape(broad[0].shape)
