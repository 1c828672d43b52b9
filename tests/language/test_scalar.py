import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright.errors import KernelError
from tilewright.language.dtype import float32, int32, int64
from tilewright.language.scalar import Float32, Int32, Int64, strong_scalar

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
def test_division_of_integers_goes_towards_zero(left: int, right: int) -> None:
    assume(right)
    quotient, rest = Int32(left) // right, Int32(left) % right
    assert quotient == int(left / right)
    assert quotient * right + rest == left
    assert left // Int32(right) == quotient


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
