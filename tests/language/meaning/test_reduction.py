from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, round_float, ulp, wrap_int
from tests.language.meaning.values import (
    FLOATS,
    INTEGERS,
    bound_for,
    evaluate,
    extremes,
    random_block,
    result_of,
    seeds,
)
from tilewright.errors import KernelTypeError
from tilewright.language.dtype import (
    DTYPES,
    DType,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    uint8,
    uint32,
)
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Charge

AXES = (None, 0, 1, -1)


def tile(dtype: DType, seed: int = 13, shape: tuple[int, ...] = (8, 16)) -> Array:
    """Random bits with every extreme among them."""
    rng = np.random.default_rng(seed)
    values = random_block(dtype, shape, rng).ravel()
    edge = extremes(dtype)[: values.size // 2]
    values[: len(edge)] = edge
    return rng.permutation(values).reshape(shape)


def moderate(dtype: DType, seed: int, shape: tuple[int, ...]) -> Array:
    values = np.random.default_rng(seed).normal(size=shape)
    return (
        (values if dtype.is_floating() else 4 * values).astype(dtype.compute).astype(dtype.storage)
    )


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_sum_of_floats_is_f32_arithmetic_rounded_once(dtype: DType, axis: int | None) -> None:
    values = moderate(dtype, 1, (32, 64))
    found = as_float64(result_of("sum", values, attributes=(axis, False, None)))
    exact = as_float64(values).sum(axis=axis)
    slack = np.abs(as_float64(values)).sum(axis=axis) * (1e-14 if dtype is float64 else 1e-6)
    assert np.all(np.abs(found - exact) <= ulp(exact, dtype) / 2 + slack)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_a_sum_of_integers_wraps_in_32_bits_or_more(
    dtype: DType, keep_dims: bool, axis: int | None
) -> None:
    values = tile(dtype)
    result = dtype if dtype.int_bitwidth >= 32 else int32 if dtype.signed else uint32
    found = result_of("sum", values, attributes=(axis, keep_dims, None))
    assert found.dtype == result.storage
    exact = np.asarray(values.astype(object).sum(axis=axis, keepdims=keep_dims))
    expected = [wrap_int(int(each), result) for each in exact.ravel()]
    assert found.ravel().tolist() == expected
    assert found.shape == exact.shape


def test_the_kernel_may_name_the_dtype_of_a_sum() -> None:
    values = np.full((4, 64), 100, np.int8)
    assert (
        result_of("sum", values, attributes=(1, False, int8)).tolist() == [wrap_int(6400, int8)] * 4
    )
    assert result_of("sum", values, attributes=(1, False, float32)).tolist() == [6400.0] * 4
    bits = np.array([[True, True, True], [True, False, True]])
    np.testing.assert_array_equal(
        result_of("sum", bits, attributes=(1, False, int1)), [True, False]
    )
    half = np.full(4096, 1.0, np.float16)
    assert result_of("sum", half, attributes=(0, False, float32)) == 4096.0


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extremes_skip_nan_and_widen_to_32_bits(dtype: DType, op: str, axis: int | None) -> None:
    values = tile(dtype)
    found = result_of(op, values, attributes=(axis, False, False))
    result = dtype
    if dtype.primitive_bitwidth < 32:
        result = float32 if dtype.is_floating() else int32
    assert found.dtype == result.storage
    wide = values.astype(object) if dtype.is_int() else as_float64(values)
    function = (np.fmax if op == "max" else np.fmin).reduce
    if dtype.is_int():
        function = (np.maximum if op == "max" else np.minimum).reduce
    with np.errstate(all="ignore"):
        expected = function(wide, axis=axis)
    np.testing.assert_array_equal(found.astype(np.float64), np.asarray(expected).astype(np.float64))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_index_points_at_the_first_of_the_extremes(dtype: DType, op: str, axis: int) -> None:
    values = tile(dtype)
    value, index = evaluate(bound_for(op, values, attributes=(axis, True, True)), values)
    assert index.dtype == np.int32
    assert value.dtype == dtype.storage
    wide = as_float64(values) if dtype.is_floating() else values.astype(object)
    for row, best, position in zip(
        np.moveaxis(wide, axis, -1), np.ravel(value), np.ravel(index), strict=True
    ):
        numbers = [(each, n) for n, each in enumerate(row.tolist()) if each == each]
        first = max(numbers, key=lambda pair: (pair[0] if op == "max" else -pair[0], -pair[1]))
        assert position == first[1]
        assert float(best) == float(first[0])
    alone = result_of(f"arg{op}", values, attributes=(axis, True))
    np.testing.assert_array_equal(alone, index)


def test_of_nothing_but_nan_the_first_is_taken() -> None:
    values = np.full((2, 4), np.nan, np.float32)
    value, index = evaluate(bound_for("max", values, attributes=(1, False, True)), values)
    assert np.isnan(value).all()
    np.testing.assert_array_equal(index, [0, 0])
    assert np.isnan(result_of("max", values, attributes=(1, False, False))).all()


def test_an_infinity_is_found_behind_nan() -> None:
    values = np.array([[np.nan, -np.inf, np.nan]], np.float32)
    np.testing.assert_array_equal(result_of("argmax", values, attributes=(1, False)), [1])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", ["xor_sum", "reduce_or"])
def test_bits_reduce_in_their_own_dtype(dtype: DType, op: str) -> None:
    values = tile(dtype)
    found = result_of(op, values, attributes=(1, False))
    for row, each in zip(values.tolist(), found.tolist(), strict=True):
        total = 0
        for number in map(int, row):
            total = total ^ number if op == "xor_sum" else total | number
        assert int(each) == total


@pytest.mark.parametrize("dtype", [*FLOATS, int8, int16, int32, uint8, uint32, int1], ids=str)
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_keep_every_step(dtype: DType, op: str, reverse: bool) -> None:
    values = moderate(dtype, 3, (4, 16)) if dtype.is_floating() else tile(dtype, 3, (4, 16))
    found = result_of(op, values, attributes=(1, reverse, None))
    turned = values[:, ::-1] if reverse else values
    function = np.add if op == "cumsum" else np.multiply
    if dtype.is_floating():
        wide = np.float64 if dtype is float64 else np.float32
        steps = function.accumulate(turned.astype(wide), axis=1).astype(np.float64)
        expected = round_float(steps, dtype)
        back = expected[:, ::-1] if reverse else expected
        np.testing.assert_array_equal(as_float64(found), back)
        return
    exact = function.accumulate(turned.astype(object) * 1, axis=1)
    result = dtype if dtype.int_bitwidth >= 32 else int32 if dtype.signed else uint32
    wrapped = np.array([[wrap_int(int(each), result) for each in row] for row in exact])
    assert found.dtype == result.storage
    np.testing.assert_array_equal(found, (wrapped[:, ::-1] if reverse else wrapped))


def add_pair(*halves: Array) -> tuple[Array, ...]:
    """(sum, count): of two streams each half has one part."""
    left, right = halves[: len(halves) // 2], halves[len(halves) // 2 :]
    return tuple(a + b for a, b in zip(left, right, strict=True))


def right_most(left: Array, right: Array) -> Array:
    """Associative and not commutative: the later of two that are not 0."""
    return np.where(right != 0, right, left)


@given(
    seed=seeds, length=st.integers(1, 33), axis=st.sampled_from([0, 1, -1]), reverse=st.booleans()
)
def test_a_function_of_the_kernels_scans_in_order(
    seed: int, length: int, axis: int, reverse: bool
) -> None:
    shape = (length, 3) if axis == 0 else (3, length)
    values = np.random.default_rng(seed).integers(-1, 3, shape).astype(np.int32)
    found = result_of("associative_scan", values, attributes=(axis, reverse, right_most))
    rows = np.moveaxis(values, axis, 0)
    rows = rows[::-1] if reverse else rows
    expected = [rows[0]]
    for row in rows[1:]:
        expected.append(right_most(expected[-1], row))
    stacked = np.stack(expected)
    stacked = stacked[::-1] if reverse else stacked
    np.testing.assert_array_equal(found, np.moveaxis(stacked, 0, axis))


@given(seed=seeds, length=st.integers(1, 33), axis=st.sampled_from([None, 0, 1, -1]))
def test_a_function_of_the_kernels_reduces_in_order(
    seed: int, length: int, axis: int | None
) -> None:
    shape = (length, 3) if axis == 0 else (3, length)
    values = np.random.default_rng(seed).integers(-1, 3, shape).astype(np.int32)
    found = result_of("reduce", values, attributes=(axis, False, right_most))
    rows = values.ravel() if axis is None else np.moveaxis(values, axis, 0)
    expected = rows[0]
    for row in rows[1:]:
        expected = right_most(expected, row)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("keep_dims", [False, True])
def test_several_blocks_reduce_together(keep_dims: bool) -> None:
    values, counts = np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((4, 6), np.int32)
    bound = bound_for("reduce", values, counts, attributes=(1, keep_dims, add_pair))
    total, number = evaluate(bound, values, counts)
    np.testing.assert_array_equal(total, values.sum(1, keepdims=keep_dims))
    np.testing.assert_array_equal(number, counts.sum(1, keepdims=keep_dims))
    assert tuple(each.shape for each in bound.type) == (total.shape, number.shape)  # type: ignore[union-attr]
    assert len(bound.charges) == 2


def test_a_reduction_calls_the_kernels_function_a_logarithm_of_times() -> None:
    calls: list[int] = []

    def counted(left: Array, right: Array) -> Array:
        calls.append(left.size)
        return left + right

    values = np.ones((2, 1024), np.float32)
    for op in ("reduce", "associative_scan"):
        calls.clear()
        result_of(op, values, attributes=(1, False, counted))
        assert len(calls) == 10


@pytest.mark.parametrize("op", ["reduce", "associative_scan"])
def test_a_function_that_changes_the_dtype_is_refused(op: str) -> None:
    def widen(left: Array, right: Array) -> Array:
        return (left + right).astype(np.float64)

    values = np.ones((2, 4), np.float32)
    bound = bound_for(op, values, attributes=(1, False, widen))
    with pytest.raises(
        KernelTypeError, match=rf"{op}: found \(float64\) from the combine function"
    ):
        evaluate(bound, values)


def test_blocks_that_reduce_together_have_one_shape() -> None:
    with pytest.raises(KernelTypeError, match="operands of one shape"):
        bound_for("reduce", np.ones(4), np.ones(8), attributes=(0, False, add_pair))


@pytest.mark.parametrize("op", ["sum", "max", "argmin", "xor_sum", "cumsum"])
def test_an_axis_that_is_not_there_is_refused(op: str) -> None:
    names = MEANINGS[op].attributes
    attributes = tuple({"axis": 2, "dtype": None}.get(name, False) for name in names)
    with pytest.raises(KernelTypeError, match=r"axis 2 in .*an axis from -2 to 1"):
        bound_for(op, np.zeros((4, 4), np.int32), attributes=attributes)


def test_the_sum_of_float32_rows_has_numpys_order() -> None:
    values = np.random.default_rng(3).normal(size=(64, 1000)).astype(np.float32)
    np.testing.assert_array_equal(
        result_of("sum", values, attributes=(1, False, None)), np.sum(values, axis=1)
    )


def test_reductions_are_charged_for_all_elements() -> None:
    bound: Any = bound_for("sum", np.zeros((8, 16), np.float16), attributes=(1, False, None))
    assert bound.charges == (Charge("sum", 128, float32),)
