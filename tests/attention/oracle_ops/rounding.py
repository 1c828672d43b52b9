"""Narrow number formats from their definition: nearest value, ties to even, large ones clamped."""

import math
from dataclasses import dataclass

import numpy as np

from tests.attention.oracle_ops.row import Array


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """``precision`` counts the leading bit; below ``least_exponent`` the spacing stays."""

    precision: int
    least_exponent: int  # of the smallest normal number, 2**least_exponent
    largest: float
    clamps: bool = False  # beyond the largest: the largest, else infinity


FORMATS = {
    "float32": NumberFormat(24, -126, float(np.finfo(np.float32).max)),
    "float16": NumberFormat(11, -14, 65504.0),
    "bfloat16": NumberFormat(8, -126, (2 - 2**-7) * 2.0**127),
    "float8_e4m3": NumberFormat(4, -6, 448.0, clamps=True),
    "float8_e5m2": NumberFormat(3, -14, 57344.0, clamps=True),
}


def round_one(value: float, number_format: NumberFormat) -> float:
    """The nearest number of the format.

    >>> round_one(1.0 + 2**-8, FORMATS["bfloat16"]), round_one(1.0 + 3 * 2**-8, FORMATS["bfloat16"])
    (1.0, 1.015625)
    """
    if value == 0.0 or not math.isfinite(value):
        return value
    exponent = max(math.frexp(value)[1] - 1, number_format.least_exponent)
    spacing = math.ldexp(1.0, exponent - number_format.precision + 1)
    rounded = round(value / spacing) * spacing  # round() takes ties to even
    if abs(rounded) <= number_format.largest:
        return rounded
    limit = number_format.largest if number_format.clamps else math.inf
    return math.copysign(limit, value)


def round_to(dtype: str, array: Array) -> Array:
    out = np.empty(array.shape)
    for index in np.ndindex(*array.shape):
        out[index] = round_one(float(array[index]), FORMATS[dtype])
    return out
