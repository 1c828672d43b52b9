"""Functions under libdevice's names, which Triton's interpreter does not have, against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.language.bed import Array, Bed
from tilewright import language as tl

X = np.linspace(-0.95, 0.95, 64, dtype=np.float32)
Y = np.linspace(3.0, -2.0, 64, dtype=np.float32)

UNARY: dict[str, tuple[Any, Callable[[Array], Array]]] = {
    "acos": (tl.acos, np.arccos),
    "asin": (tl.asin, np.arcsin),
    "atan": (tl.atan, np.arctan),
    "cbrt": (tl.cbrt, np.cbrt),
    "cosh": (tl.cosh, np.cosh),
    "erfc": (tl.erfc, lambda x: 1 - np.asarray([_erf(each) for each in x])),
    "exp10": (tl.exp10, lambda x: 10.0**x),
    "expm1": (tl.expm1, np.expm1),
    "log10": (lambda x: tl.log10(x + 2), lambda x: np.log10(x + 2)),
    "log1p": (tl.log1p, np.log1p),
    "rint": (lambda x: tl.rint(x * 5), lambda x: np.rint(x * 5)),
    "round": (
        lambda x: tl.round(x * 5),
        lambda x: np.trunc(x * 5 + np.copysign(0.5, x)),
    ),
    "sinh": (tl.sinh, np.sinh),
    "tan": (tl.tan, np.tan),
    "tanh": (tl.tanh, np.tanh),
    "trunc": (lambda x: tl.trunc(x * 5), lambda x: np.trunc(x * 5)),
    "isnan": (lambda x: tl.isnan(tl.log2(x)), lambda x: x < 0),
    "isinf": (lambda x: tl.isinf(x * 3e38), lambda x: abs(x * 3e38) > 3.4028235e38),
    "isfinited": (lambda x: tl.isfinited(tl.sqrt(x)), lambda x: x >= 0),
    "logical_not": (lambda x: tl.logical_not(x > 0), lambda x: ~(x > 0)),
}
BINARY: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "atan2": (tl.atan2, np.arctan2),
    "copysign": (tl.copysign, np.copysign),
    "hypot": (tl.hypot, np.hypot),
    "logical_and": (lambda x, y: tl.logical_and(x > 0, y > 0), lambda x, y: (x > 0) & (y > 0)),
    "logical_or": (lambda x, y: tl.logical_or(x > 0, y > 0), lambda x, y: (x > 0) | (y > 0)),
    "pow": (lambda x, y: tl.pow(tl.abs(x), y), lambda x, y: np.abs(x) ** y),
}


def _erf(x: float) -> float:
    """By Simpson's rule, which is exact enough on so short a range."""
    t = np.linspace(0.0, float(x), 2001)
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return float(2 / np.sqrt(np.pi) * (weights * np.exp(-t * t)).sum() * (t[1] - t[0]) / 3)


def run(function: Any, *operands: Array) -> Array:
    def kernel(pointers: Any, out_ptr: Any) -> None:
        n = tl.arange(0, 64)
        found = function(*[tl.load(pointer + n) for pointer in pointers])
        tl.store(out_ptr + n, found.to(tl.float32))

    bed = Bed()
    out = bed.place(np.zeros(64, np.float32))
    bed.launch(kernel, tuple(bed.place(operand) for operand in operands), out)
    return bed.read(out)


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_block_is_what_numpy_computes(name: str) -> None:
    function, expected = UNARY[name]
    np.testing.assert_allclose(run(function, X), expected(X.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_blocks_is_what_numpy_computes(name: str) -> None:
    function, expected = BINARY[name]
    wide = expected(X.astype(np.float64), Y.astype(np.float64))
    np.testing.assert_allclose(run(function, X, Y), wide, rtol=2e-6)


def test_libdevice_has_the_same_functions() -> None:
    for name in (*UNARY, *BINARY):
        assert getattr(tl.extra.libdevice, name) is getattr(tl, name)
        assert getattr(tl.math, name) is getattr(tl, name)
