import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.errors import KernelError
from tilewright.language.dtype import DType, dtype_of, float32, int32, int64
from tilewright.language.promote import computation_dtype
from tilewright.language.scalar import Float32, Int32, Int64, strong_scalar, typed_scalar
from tilewright.language.triton.scalar import FUNCTIONS as TRITON

small = st.integers(-1000, 1000)


@given(small, small, st.sampled_from([operator.add, operator.sub, operator.mul]))
def test_arithmetic_is_that_of_integers_and_keeps_the_dtype(
    left: int, right: int, op: Callable[[Any, Any], Any]
) -> None:
    for found in (op(Int32(left), right), op(left, Int32(right)), op(Int32(left), Int32(right))):
        assert found == op(left, right)
        assert found.dtype is int32
    assert op(Int64(left), Int32(right)).dtype is int64


@given(small, small)
def test_division_of_integers_is_that_of_python(left: int, right: int) -> None:
    assume(right)
    for one, other in ((Int32(left), right), (left, Int32(right)), (Int64(left), Int32(right))):
        assert (one // other, one % other) == divmod(left, right)
        assert type(one // other) is type(one % other) is (Int64 if one is not left and
            type(one) is Int64 else Int32)  # fmt: skip


@given(small, small)
def test_division_in_triton_goes_towards_zero(left: int, right: int) -> None:
    assume(right)
    for one, other in ((Int32(left), right), (left, Int32(right)), (Int64(left), Int32(right))):
        assert TRITON[".quotient"](one, other) == int(left / right)
        assert TRITON[".remainder"](one, other) == left - right * int(left / right)
    assert TRITON[".quotient"](left, right) == left // right  # of constants it is Python's


def test_an_int32_that_would_wrap_is_refused_with_what_to_do() -> None:
    with pytest.raises(KernelError, match=r"4294967296.*fits int32.*to\(tl.int64\)"):
        Int32(65_536) * 65_536
    assert Int32(65_536).to(int64) * 65_536 == 2**32


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_arithmetic_of_floats_is_rounded_to_float32(left: float, right: float) -> None:
    with np.errstate(all="ignore"):
        for op in (operator.add, operator.sub, operator.mul):
            found = op(Float32(left), right)
            expected = op(np.float32(left), np.float32(right))
            assert np.float32(found) == expected or (np.isnan(expected) and found != found)


def test_arguments_are_as_narrow_as_they_can_be() -> None:
    assert strong_scalar(2**31 - 1).dtype is int32
    assert strong_scalar(2**31).dtype is int64
    assert strong_scalar(0.1).dtype is float32
    assert strong_scalar(0.1) == np.float32(0.1)


def test_scalars_go_wherever_numbers_go() -> None:
    assert list(range(Int32(2))) == [0, 1]
    assert [10, 20][Int32(1)] == 20
    assert type(Int32(7) / 2) is Float32
    assert -Int32(3) == -3
    assert min(Int32(3), 4) == 3


WRAPPING = [dtype_of(name) for name in ("int8", "uint8", "int16", "uint16", "uint32", "uint64")]


@given(st.sampled_from(WRAPPING), st.sampled_from(WRAPPING), small, small,
       st.sampled_from(["add", "sub", "mul", "and_", "or_", "xor"]))  # fmt: skip
def test_integers_that_are_no_int32_or_int64_promote_and_wrap_as_blocks_do(
    left_dtype: DType, right_dtype: DType, left: int, right: int, name: str
) -> None:
    one, other = typed_scalar(left, left_dtype), typed_scalar(right, right_dtype)
    found = getattr(operator, name)(one, other)
    dtype = computation_dtype("add", left_dtype, right_dtype)
    exact = getattr(operator, name)(
        *(np.asarray(each).astype(dtype.storage) for each in (one, other))
    )
    assert found.dtype is dtype
    assert found == int(exact)


def test_a_negative_number_beside_an_unsigned_scalar_is_refused() -> None:
    with pytest.raises(KernelError, match=r"-1 beside tl.uint32, expected a number that fits"):
        typed_scalar(5, dtype_of("uint32")) + -1


def test_a_float_beside_an_integer_gives_a_float32() -> None:
    assert type(Int32(3) * 0.5) is type(2 / Int32(3)) is Float32
    assert type(TRITON[".mul"](0.5, Int32(3))) is Float32  # Python's own would ask the float
    assert Int32(2**24 + 1) * 1.0 == 2.0**24  # an int32 becomes a float32 first
    assert Float32(0.1) * 3 == np.float32(0.1) * np.float32(3)
    assert strong_scalar(0.1) == 0.1  # a weak number is rounded, too
    assert strong_scalar(1.0) / 0 == float("inf")


def test_a_negative_and_an_inverted_scalar_keep_their_dtype() -> None:
    for kind, dtype in ((Int64, int64), (Int32, int32)):
        scalar: Any = kind(5)
        assert (-scalar).dtype is (~scalar).dtype is dtype
    byte: Any = typed_scalar(5, dtype_of("uint8"))
    truth: Any = typed_scalar(1, dtype_of("int1"))
    assert (~byte, ~truth) == (250, 0)


def test_a_conversion_keeps_the_low_bits_and_a_bitcast_all() -> None:
    assert Int32(300).to("int8") == 44
    assert Int64(2**32 + 5).to(int32) == 5
    assert Int32(-1).to("uint32") == 2**32 - 1
    assert strong_scalar(-2.7).to(int32) == -2
    assert strong_scalar(1.0).to(int32, bitcast=True) == 0x3F800000
    assert Int32(3).cast("float16").dtype is dtype_of("float16")
