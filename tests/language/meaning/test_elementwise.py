import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, of_python, round_float, ulp
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    block,
    blocks_of,
    bound_for,
    result_of,
    seeds,
)
from tilewright.errors import KernelTypeError
from tilewright.language.dtype import DType, bfloat16, float16, float32, float64
from tilewright.language.meaning.bound import Array


def by_element(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda array: np.array([function(each) for each in array.tolist()])


def round_half_away(number: float) -> float:
    if not math.isfinite(number):
        return number
    exact = Fraction(number)
    return math.copysign(float(math.floor(abs(exact) + Fraction(1, 2))), number)


EXACT: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "rint": np.rint,
    "round": by_element(round_half_away),
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "trunc": np.trunc,
}
CLOSE: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": by_element(math.erf),
    "erfc": by_element(math.erfc),
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
PAIRS: dict[str, Callable[..., Any]] = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "hypot": np.hypot,
    "pow": np.power,
}
TESTS: dict[str, Callable[..., Any]] = {
    "isfinited": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", EXACT)
def test_functions_with_exact_results_are_rounded_once(op: str, dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(11), 32)
    with np.errstate(all="ignore"):
        expected = round_float(EXACT[op](as_float64(values)), dtype)
    np.testing.assert_array_equal(as_float64(result_of(op, values)), expected)


def assert_close(found: Array, exact: Array, dtype: DType) -> None:
    """Within 4 units in the last place of f32 and f64; what is rounded from f32 within 1."""
    expected = round_float(exact, dtype)
    allowed = ulp(exact, dtype) * (4 if dtype in (float32, float64) else 1)
    finite = np.isfinite(expected) & np.isfinite(found)
    # next to overflow the last unit decides between the largest and infinity
    at_the_edge = np.isinf(expected) != np.isinf(found)
    largest = np.abs(round_float(np.array(np.finfo(np.float64).max), dtype))
    assert np.all(
        np.abs(np.where(at_the_edge, largest, exact)) >= largest / 1.01, where=at_the_edge
    )
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert np.all(np.abs(found - expected)[finite] <= allowed[finite])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", CLOSE)
def test_functions_are_within_units_of_the_last_place(op: str, dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(11), 32)
    with np.errstate(all="ignore"):
        exact = CLOSE[op](as_float64(values))
        assert_close(as_float64(result_of(op, values)), exact, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", PAIRS)
def test_functions_of_two_are_within_units_of_the_last_place(op: str, dtype: DType) -> None:
    left, right = blocks_of(dtype, np.random.default_rng(11), 2)
    with np.errstate(all="ignore"):
        exact = PAIRS[op](as_float64(left), as_float64(right))
        found = as_float64(result_of(op, left, right))
        assert_close(found, exact, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", TESTS)
def test_kinds_of_floats_are_told_apart(op: str, dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(11))
    np.testing.assert_array_equal(result_of(op, values), TESTS[op](as_float64(values)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_neg_and_abs_change_the_sign_alone(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(11))
    wide = as_float64(values)
    for op, expected in (("neg", -wide), ("abs", np.abs(wide))):
        found = as_float64(result_of(op, values))
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_neg_and_abs_of_integers_wrap(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(11))
    neg = of_python(lambda a: -a, dtype, values)
    np.testing.assert_array_equal(result_of("neg", values).astype(object), neg)
    magnitude = of_python(abs, dtype, values)
    np.testing.assert_array_equal(result_of("abs", values).astype(object), magnitude)


@pytest.mark.parametrize("op", [*EXACT, *CLOSE, *TESTS])
def test_functions_of_floats_refuse_integers(op: str) -> None:
    with pytest.raises(KernelTypeError, match=rf"{op}\(int32\[4\]\), expected floats; cast"):
        bound_for(op, np.zeros(4, np.int32))


# wide enough for every kind of cancellation, and no product's lost bits leave the range of f64
FMA_RANGE = st.floats(2.0**-60, 2.0**60, width=32).flatmap(lambda x: st.sampled_from([x, -x, 0.0]))


@given(FMA_RANGE, FMA_RANGE, FMA_RANGE)
def test_fma_of_float32_rounds_the_exact_sum_once(a: float, b: float, c: float) -> None:
    check_fma(float32, a, b, c)


@given(FMA_RANGE, FMA_RANGE, FMA_RANGE)
def test_fma_of_float64_rounds_the_exact_sum_once(a: float, b: float, c: float) -> None:
    check_fma(float64, a * (1 + 2.0**-50), b * (1 - 2.0**-49), c)
    check_fma(float64, a, b, -a * b)  # all that is left is what rounding the product lost


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32], ids=str)
@given(seed=seeds)
def test_fma_of_random_bits_rounds_the_exact_sum_once(dtype: DType, seed: int) -> None:
    values = block(dtype, np.random.default_rng(seed), 1)
    wide = as_float64(values)
    a, b, c = wide[np.isfinite(wide)][:3].tolist()
    check_fma(dtype, a, b, c)


@pytest.mark.parametrize("sign", [1, -1])
def test_fma_sees_what_is_far_below_a_tie(sign: int) -> None:
    """The product lies between two floats, and only the addend's direction decides."""
    check_fma(float32, 1 + 2.0**-12, 1 + 2.0**-12, sign * 2.0**-80)
    check_fma(bfloat16, 1 + 2.0**-4, 1 + 2.0**-4, sign * 2.0**-80)
    check_fma(float64, 1 + 2.0**-27, 1 + 2.0**-26, sign * 2.0**-120)
    check_fma(float64, 1 + 2.0**-27, -1 - 2.0**-26, sign * 2.0**-120)


def check_fma(dtype: DType, a: float, b: float, c: float) -> None:
    operands = [np.array([each]).astype(dtype.storage) for each in (a, b, c)]
    left, right, addend = (Fraction(float(each.astype(np.float64)[0])) for each in operands)
    exact = left * right + addend
    found = as_float64(result_of("fma", *operands))[0]
    assert found == nearest(exact, dtype)


def nearest(exact: Fraction, dtype: DType) -> float:
    """The float of ``dtype`` nearest to a fraction, by comparing neighbours exactly."""
    guess = float(round_float(np.array(_to_float(exact)), dtype))
    if not math.isfinite(guess) or exact == guess:
        return guess
    step = float(ulp(np.array(guess), dtype))
    nearby = sorted({guess - step, guess - step / 2, guess, guess + step / 2, guess + step})
    floats = [each for each in nearby if float(round_float(np.array(each), dtype)) == each]
    best = min(abs(exact - Fraction(each)) for each in floats)
    ties = [each for each in floats if abs(exact - Fraction(each)) == best]
    return ties[0] if len(ties) == 1 else even_of(ties, dtype)


def _to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def even_of(ties: list[float], dtype: DType) -> float:
    bits = np.dtype(f"uint{dtype.primitive_bitwidth}")
    patterns = np.array(ties).astype(dtype.storage).view(bits)
    return ties[0] if int(patterns[0]) % 2 == 0 else ties[1]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_fma_of_integers_wraps(dtype: DType) -> None:
    operands = blocks_of(dtype, np.random.default_rng(11), 3)
    expected = of_python(lambda a, b, c: a * b + c, dtype, *operands)
    np.testing.assert_array_equal(result_of("fma", *operands).astype(object), expected)


def test_fma_of_infinities_is_that_of_the_plain_sum() -> None:
    specials = np.array([np.inf, -np.inf, np.nan, 0.0, 1.0])
    a, b, c = specials[:, None, None], specials[None, :, None], specials[None, None, :]
    with np.errstate(all="ignore"):
        expected = a * b + c
    for dtype in (np.float32, np.float64):
        found = result_of("fma", a.astype(dtype), b.astype(dtype), c.astype(dtype))
        np.testing.assert_array_equal(found, expected)
