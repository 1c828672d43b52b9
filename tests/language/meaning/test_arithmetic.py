from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, of_python, round_float
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    block,
    blocks_of,
    bound_for,
    random_block,
    result_of,
    seeds,
)
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import (
    DTYPES,
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    uint8,
    uint32,
)
from tilewright.language.meaning import MEANINGS, Array

FLOAT_OPS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "div_rn": np.divide,
    "fdiv": np.divide,
    "mod": np.mod,
    "remainder": np.fmod,
}
ATTRIBUTES: dict[str, tuple[object, ...]] = {
    "fdiv": (False, False),
    "maximum": (False,),
    "minimum": (False,),
    "clamp": (False,),
}


def trunc_div(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def trunc_mod(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * trunc_div(a, b)


INTEGER_OPS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: 0 if b == 0 else a // b,
    "mod": lambda a, b: 0 if b == 0 else a % b,
    "quotient": trunc_div,
    "remainder": trunc_mod,
    "maximum": max,
    "minimum": min,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def operands_of(dtype: DType, count: int, seed: int = 3) -> tuple[Array, ...]:
    return blocks_of(dtype, np.random.default_rng(seed), count)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float_arithmetic_is_exact_arithmetic_rounded_once(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = result_of(op, left, right, attributes=ATTRIBUTES.get(op, ()))
    with np.errstate(all="ignore"):
        exact = FLOAT_OPS[op](as_float64(left), as_float64(right))
    narrow_division = op in ("div", "fdiv", "mod", "remainder") and dtype is not float64
    result = float32 if narrow_division else dtype
    expected = round_float(exact, result)
    np.testing.assert_array_equal(as_float64(found), expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(
        np.signbit(as_float64(found))[numbers], np.signbit(expected)[numbers]
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_arithmetic_is_exact_and_wraps(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = result_of(op, left, right, attributes=ATTRIBUTES.get(op, ()))
    np.testing.assert_array_equal(
        found.astype(object), of_python(INTEGER_OPS[op], dtype, left, right)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_are_those_of_the_values(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    wide = object if dtype.is_int() else np.float64
    expected = COMPARISONS[op](left.astype(wide), right.astype(wide)).astype(np.bool_)
    np.testing.assert_array_equal(result_of(op, left, right), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_divide_to_float32(dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    with np.errstate(all="ignore"):
        expected = left.astype(np.float32) / right.astype(np.float32)
    np.testing.assert_array_equal(result_of("div", left, right), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_without_propagation_a_number_beats_nan(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    function = np.fmax if op == "maximum" else np.fmin
    with np.errstate(all="ignore"):
        expected = function(as_float64(left), as_float64(right))
    np.testing.assert_array_equal(
        as_float64(result_of(op, left, right, attributes=(False,))), expected
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_with_propagation_nan_wins_and_zeros_have_an_order(op: str, dtype: DType) -> None:
    left, right = operands_of(dtype, 2)
    found = as_float64(result_of(op, left, right, attributes=(True,)))
    a, b = np.broadcast_arrays(as_float64(left), as_float64(right))
    nan = np.isnan(a) | np.isnan(b)
    np.testing.assert_array_equal(np.isnan(found), nan)
    above = (a > b) | ((a == b) & ~np.signbit(a))  # +0 is above -0
    greatest = np.where(above == (op == "maximum"), a, b)
    np.testing.assert_array_equal(found[~nan], greatest[~nan])
    np.testing.assert_array_equal(np.signbit(found)[~nan], np.signbit(greatest)[~nan])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("propagate_nan", [False, True])
def test_clamp_is_a_maximum_and_then_a_minimum(dtype: DType, propagate_nan: bool) -> None:
    value, low, high = operands_of(dtype, 3)
    raised = result_of("maximum", value, low, attributes=(propagate_nan,))
    expected = result_of("minimum", raised, high, attributes=(propagate_nan,))
    found = result_of("clamp", value, low, high, attributes=(propagate_nan,))
    wide = object if dtype.is_int() else np.float64
    np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_takes_bits_as_they_are(dtype: DType) -> None:
    rng = np.random.default_rng(5)
    left, right = random_block(dtype, (16, 8), rng), random_block(dtype, (8,), rng)
    condition = rng.integers(0, 2, (16, 1)).astype(np.bool_)
    found = result_of("where", condition, left, right)
    expected = np.where(condition, left, right)
    assert found.tobytes() == expected.tobytes()


def test_where_takes_any_integer_as_a_condition() -> None:
    found = result_of("where", np.array([0, 2, -1], np.int32), np.ones(3), np.zeros(3))
    np.testing.assert_array_equal(found, [0, 1, 1])


@given(seed=seeds, data=st.data())
def test_mixed_dtypes_compute_as_if_cast_first(seed: int, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(["add", "sub", "mul", "lt", "maximum", "where"]))
    left_type, right_type = data.draw(st.sampled_from(COMPATIBLE))
    rng = np.random.default_rng(seed)
    left, right = block(left_type, rng, 2), block(right_type, rng, 2)
    length = min(len(left), len(right))
    left, right = left[:length], right[:length]
    attributes = ATTRIBUTES.get(op, ())
    sides = (left, right)
    condition = (rng.integers(0, 2, length).astype(np.bool_),) if op == "where" else ()
    bound = bound_for("add", left, right)
    common = bound.type.dtype  # type: ignore[union-attr]
    cast = [result_of("cast", each, attributes=(common, None)) for each in sides]
    found = result_of(op, *condition, *sides, attributes=attributes)
    expected = result_of(op, *condition, *cast, attributes=attributes)
    wide = np.float64 if found.dtype.kind in "fV" else object
    np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))


COMPATIBLE = [
    (left, right)
    for left, right in product(DTYPES, DTYPES)
    if not (left.is_fp8() and right.is_int()) and not (right.is_fp8() and left.is_int())
]


@given(seed=seeds, data=st.data())
def test_operands_broadcast_as_numpy_does(seed: int, data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shapes = []
    for _ in range(2):
        keep = data.draw(st.lists(st.booleans(), min_size=len(extents), max_size=len(extents)))
        shape = [extent if kept else 1 for extent, kept in zip(extents, keep, strict=True)]
        shapes.append(tuple(shape[data.draw(st.integers(0, len(extents))) :]))
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    left, right = np.asarray(left), np.asarray(right)
    np.testing.assert_array_equal(result_of("add", left, right), left + right)


def test_shapes_that_do_not_fit_are_refused_with_the_axis() -> None:
    left, right = np.zeros((4, 8), np.float32), np.zeros((3, 8), np.float32)
    with pytest.raises(
        KernelTypeError, match=r"add\(fp32\[4, 8\], fp32\[3, 8\]\).*axis 0 has 4 and 3"
    ):
        bound_for("add", left, right)


def test_float32_arithmetic_is_numpys_own_function() -> None:
    tile = block_type(float32, (64, 64))
    for op, function in (("add", np.add), ("mul", np.multiply), ("maximum", np.fmax)):
        assert MEANINGS[op].bind((tile, tile), ATTRIBUTES.get(op, ())).run is function


def test_narrow_floats_are_charged_as_float32() -> None:
    tile = block_type(bfloat16, (64, 64))
    bound = MEANINGS["add"].bind((tile, block_type(bfloat16, ())))
    assert (bound.cost_op, bound.cost_elements, bound.cost_dtype) == ("add", 4096, float32)


@pytest.mark.parametrize("pair", [(int32, uint32), (uint8, int8)])
@pytest.mark.parametrize("op", ["div", "floordiv", "mod", "quotient", "remainder"])
def test_division_of_mixed_signs_is_refused(op: str, pair: tuple[DType, DType]) -> None:
    with pytest.raises(KernelTypeError, match="integers of one signedness"):
        MEANINGS[op].bind(tuple(block_type(dtype, (4,)) for dtype in pair))


def test_floor_division_of_floats_is_refused() -> None:
    with pytest.raises(
        KernelTypeError, match=r"floordiv\(fp32\[4\], fp32\[4\]\), expected integers"
    ):
        MEANINGS["floordiv"].bind((block_type(float32, (4,)),) * 2)


def test_fdiv_refuses_what_contradicts_itself() -> None:
    single, half = block_type(float32, (4,)), block_type(float64, (4,))
    with pytest.raises(KernelError, match="one way to round"):
        MEANINGS["fdiv"].bind((single, single), (True, True))
    with pytest.raises(KernelTypeError, match="float32 operands for approx"):
        MEANINGS["fdiv"].bind((half, half), (False, True))


def test_arithmetic_on_one_bit_wraps() -> None:
    bits = np.array([False, True])
    left, right = bits[:, None], bits[None, :]
    np.testing.assert_array_equal(result_of("add", left, right), left ^ right)
    np.testing.assert_array_equal(result_of("sub", left, right), left ^ right)
    np.testing.assert_array_equal(result_of("mul", left, right), left & right)


@pytest.mark.parametrize("dtype", [float16, float8e4nv, float8e5, bfloat16], ids=str)
def test_a_sum_beyond_the_range_overflows_as_the_format_does(dtype: DType) -> None:
    largest = np.array(
        [{float16: 65504.0, float8e4nv: 448.0, float8e5: 57344.0}.get(dtype, 3.3e38)]
    )
    largest = largest.astype(dtype.storage)
    found = as_float64(result_of("add", largest, largest))
    assert found == (448.0 if dtype is float8e4nv else np.inf)


def test_int1_is_unsigned_beside_integers() -> None:
    found = result_of("add", np.array([True]), np.array([-3], np.int8))
    assert found.dtype == np.int8
    assert found == -2
    assert bound_for("add", np.array([True]), np.array([1], np.int32)).type is block_type(
        int32, (1,)
    )
    assert bound_for("lt", np.array([True]), np.array([1], np.int32)).type is block_type(int1, (1,))
