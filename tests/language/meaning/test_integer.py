from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.exact import of_python, wrap_int
from tests.language.meaning.values import INTEGERS, block, blocks_of, bound_for, result_of
from tilewright.errors import KernelTypeError
from tilewright.language.dtype import DTYPES, DType, int1, int32, int64, uint32, uint64
from tilewright.language.meaning import MEANINGS

BITWISE: dict[str, Callable[..., int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", BITWISE)
def test_bits_combine_as_pythons_do(op: str, dtype: DType) -> None:
    left, right = blocks_of(dtype, np.random.default_rng(7), 2)
    expected = of_python(BITWISE[op], dtype, left, right)
    np.testing.assert_array_equal(result_of(op, left, right).astype(object), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_not_turns_every_bit(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(7))
    expected = of_python(lambda a: ~a, dtype, values)
    np.testing.assert_array_equal(result_of("not", values).astype(object), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_drop_bits_and_end_in_zero_or_the_sign(dtype: DType) -> None:
    values = block(dtype, np.random.default_rng(7), 2)
    most = min(2 * dtype.primitive_bitwidth, dtype.get_int_max_value())
    amounts = np.arange(most + 1).astype(dtype.storage)
    values, amounts = values[:, None], amounts[None, :]
    shl = of_python(lambda a, b: a << b, dtype, values, amounts)
    shr = of_python(lambda a, b: a >> b, dtype, values, amounts)
    np.testing.assert_array_equal(result_of("shl", values, amounts).astype(object), shl)
    np.testing.assert_array_equal(result_of("shr", values, amounts).astype(object), shr)


def test_a_shift_by_a_negative_amount_drops_all_bits() -> None:
    values, amount = np.array([5, -5], np.int32), np.array([-1, -1], np.int32)
    np.testing.assert_array_equal(result_of("shl", values, amount), [0, 0])
    np.testing.assert_array_equal(result_of("shr", values, amount), [0, -1])


def test_the_left_operand_says_whether_a_shift_keeps_the_sign() -> None:
    negative, amount = np.array([-8], np.int32), np.array([1], np.uint32)
    assert result_of("shr", negative, amount) == wrap_int(-4, uint32)
    unsigned, signed_amount = np.array([0xF0], np.uint8), np.array([4], np.int32)
    assert result_of("shr", unsigned, signed_amount) == 0xF


@pytest.mark.parametrize("dtype", [int32, uint32, int64, uint64], ids=str)
@given(data=st.data())
def test_umulhi_is_the_upper_half_of_the_whole_product(dtype: DType, data: st.DataObject) -> None:
    bits = dtype.primitive_bitwidth
    numbers = st.integers(0, 2**bits - 1)
    left, right = data.draw(numbers), data.draw(numbers)
    unsigned = np.dtype(f"uint{bits}")
    arrays = (np.array([each], unsigned).view(dtype.storage) for each in (left, right))
    found = result_of("umulhi", *arrays)
    assert found.view(unsigned) == left * right >> bits


def test_umulhi_of_narrow_integers_is_refused() -> None:
    values = np.zeros(4, np.int16)
    with pytest.raises(KernelTypeError, match="integers of 32 or 64 bits"):
        bound_for("umulhi", values, values)


@pytest.mark.parametrize("op", ["and", "or", "xor", "shl", "shr", "not"])
def test_floats_have_no_bits_to_combine(op: str) -> None:
    values = [np.zeros(4, np.float32)] * MEANINGS[op].num_operands[0]
    with pytest.raises(KernelTypeError, match="expected integers"):
        bound_for(op, *values)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logic_takes_everything_but_zero_as_true(dtype: DType) -> None:
    left, right = blocks_of(dtype, np.random.default_rng(7), 2)
    a, b = left.astype(np.float64) != 0, right.astype(np.float64) != 0
    np.testing.assert_array_equal(result_of("logical_and", left, right), a & b)
    np.testing.assert_array_equal(result_of("logical_or", left, right), a | b)
    np.testing.assert_array_equal(result_of("logical_not", left), ~a)
    assert bound_for("logical_and", left, right).type.dtype is int1  # type: ignore[union-attr]
