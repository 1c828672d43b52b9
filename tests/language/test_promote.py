from functools import reduce
from itertools import product
from typing import Any

import pytest
import triton.language as triton_language  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from triton.language.semantic import TritonSemantic  # type: ignore[import-untyped]

from tilewright.errors import KernelTypeError
from tilewright.language.dtype import DTYPES, DType, dtype_of, float16, float32, int4, int8
from tilewright.language.promote import (
    Operand,
    common_dtype,
    computation_dtype,
    integer_dtype,
    scalar_dtype,
)

IN_TRITON = tuple(dtype for dtype in DTYPES if dtype is not int4)
NUMBERS = (True, 0, -1, 2**31, 2**40, 2**63, 0.5, 1e300, 1e-300, float("inf"), float("nan"))
OPERANDS: tuple[Operand, ...] = (*IN_TRITON, *NUMBERS)

SEMANTIC = TritonSemantic(None)


def theirs(dtype: DType) -> Any:
    return getattr(triton_language, dtype.language_name)


def triton_says(left: Operand, right: Operand, *, division: bool) -> DType | None:
    types = [
        theirs(each) if isinstance(each, DType) else SEMANTIC.to_tensor_type(each)
        for each in (left, right)
    ]
    scalars = [not isinstance(each, DType) for each in (left, right)]
    try:
        found = SEMANTIC.computation_type_impl(types[0], scalars[0], types[1], scalars[1], division)
    except TypeError:
        return None
    return dtype_of(found)


@pytest.mark.parametrize("op", ["add", "mod"])
def test_every_pair_of_operands_computes_in_tritons_dtype(op: str) -> None:
    for left, right in product(OPERANDS, OPERANDS):
        expected = triton_says(left, right, division=op == "mod")
        if expected is None:
            with pytest.raises(KernelTypeError):
                computation_dtype(op, left, right)
        else:
            assert computation_dtype(op, left, right) is expected, (left, right)


@given(st.integers(-(2**63), 2**64 - 1) | st.floats() | st.booleans())
def test_a_number_by_itself_has_tritons_dtype(value: bool | int | float) -> None:
    assert scalar_dtype(value) is dtype_of(SEMANTIC.to_tensor_type(value))


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_an_integer_of_more_than_64_bits_is_refused(value: int) -> None:
    with pytest.raises(KernelTypeError, match=r"add: found the integer .*at most 64 bits"):
        scalar_dtype(value, "add")


@given(st.lists(st.sampled_from(IN_TRITON), min_size=3, max_size=3))
def test_three_operands_are_promoted_one_after_the_other(operands: list[DType]) -> None:
    try:
        found: DType | None = common_dtype("fma", operands)
    except KernelTypeError:
        found = None
    assert found is triton_of_three(operands)


def triton_of_three(blocks: list[DType]) -> DType | None:
    def both(left: Any, right: Any) -> Any:
        return SEMANTIC.computation_type_impl(left, False, right, False, False)

    try:
        return dtype_of(reduce(both, map(theirs, blocks)))
    except TypeError:
        return None


def test_promotion_that_was_done_once_changes_nothing_the_second_time() -> None:
    for op, block, number in product(("add", "mod"), IN_TRITON, NUMBERS):
        try:
            first = computation_dtype(op, block, number)
        except KernelTypeError:  # int1 by an int32: mixed signs
            assert block.is_bool()
            continue
        assert computation_dtype(op, block, first) is first


def test_int4_is_the_narrowest_signed_integer() -> None:
    assert integer_dtype(int4, int8) is int8
    assert computation_dtype("add", int4, 3) is int4
    assert computation_dtype("add", int4, float16) is float16
    assert computation_dtype("add", int4, 0.5) is float32
