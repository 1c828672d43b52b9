import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import as_float64, round_float
from tests.language.meaning.values import FLOATS, INTEGERS, bound_for
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DTYPES, DType, bfloat16, float16, float32, int32, uint8
from tilewright.language.meaning import MEANINGS, constant, evaluate


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(st.floats())
def test_a_number_becomes_a_float_by_one_rounding(dtype: DType, value: float) -> None:
    found = constant(value, dtype)
    assert (found.shape, found.dtype) == ((), dtype.storage)
    np.testing.assert_array_equal(as_float64(found), round_float(np.array(value), dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_integer_dtype_takes_its_range_and_no_more(dtype: DType) -> None:
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    assert int(constant(low, dtype)) == low
    assert int(constant(high, dtype)) == high
    assert int(constant(0.0, dtype)) == 0
    for value in (low - 1, high + 1, 0.5):
        with pytest.raises(KernelTypeError, match=f"add: .*an integer from {low} to {high}"):
            constant(value, dtype, "add")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_full_block_has_one_value_everywhere(dtype: DType) -> None:
    bound = MEANINGS["full"].bind((), ((4, 8), 1, dtype))
    found = evaluate(bound)
    assert bound.type is block_type(dtype, (4, 8))
    np.testing.assert_array_equal(found.astype(np.float64), np.ones((4, 8)))
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 0


def test_a_full_block_of_a_scalar_block_casts_it() -> None:
    scalar = np.array(2.5, np.float32)
    bound = bound_for("full", scalar, attributes=((2, 2), None, int32))
    np.testing.assert_array_equal(evaluate(bound, scalar), [[2, 2], [2, 2]])
    assert evaluate(bound, scalar).dtype == np.int32


def test_a_full_scalar_is_no_command() -> None:
    bound = MEANINGS["full"].bind((), ((), 7, bfloat16))
    assert bound.charges == ()
    assert float(evaluate(bound)) == 7.0


def test_a_block_to_fill_with_is_a_scalar() -> None:
    with pytest.raises(KernelTypeError, match="a scalar to fill the block with"):
        MEANINGS["full"].bind((block_type(float32, (2,)),), ((4,), None, float16))


def test_a_full_block_keeps_to_the_range_of_its_dtype() -> None:
    with pytest.raises(KernelTypeError, match="full: found the number 256"):
        MEANINGS["full"].bind((), ((4,), 256, uint8))


def test_a_range_counts_from_start_to_end() -> None:
    bound = MEANINGS["arange"].bind((), (3, 7))
    assert bound.type is block_type(int32, (4,))
    np.testing.assert_array_equal(evaluate(bound), [3, 4, 5, 6])


@pytest.mark.parametrize("ends", [(0, 0), (5, 1), (0, 2**32), (0.0, 4)])
def test_a_range_that_is_no_range_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(KernelError, match="a range of int32"):
        MEANINGS["arange"].bind((), ends)


def test_a_range_has_a_power_of_two_elements() -> None:
    with pytest.raises(KernelError, match="of 6 elements, expected a power of two; round up"):
        MEANINGS["arange"].bind((), (0, 6))
