"""Every result that is known without a command equals what NumPy computes from the elements."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.language.bed import Array
from tilewright.language.affine import Affine, Box
from tilewright.language.dtype import DType, float32, int4, int8, int32, int64, uint32
from tilewright.language.known import known_binary, known_where
from tilewright.language.scalar import Int32, Int64, typed_scalar
from tilewright.language.value import Index, Mask, Pointers

NOBODY: Any = None  # known results ask nothing of a program

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def towards_zero(left: Array, right: Array) -> Array:
    return np.sign(left) * np.sign(right) * (abs(left) // abs(right))


INTEGERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "quotient": towards_zero,
    "remainder": lambda left, right: left - right * towards_zero(left, right),
    "minimum": np.minimum,
    "maximum": np.maximum,
}

shapes = st.sampled_from([(), (1,), (4,), (3, 1), (1, 4), (3, 4)])
numbers = st.integers(-20, 20)


@st.composite
def indices(draw: st.DrawFn) -> Index:
    shape = draw(shapes)
    strides = tuple(draw(st.integers(-6, 6)) for _ in shape)
    dtype = draw(st.sampled_from([int32, int64]))
    return Index(NOBODY, Affine(draw(st.integers(-40, 60)), strides, shape), dtype)


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    shape = draw(shapes)
    low = tuple(draw(st.integers(0, extent)) for extent in shape)
    high = tuple(draw(st.integers(0, extent)) for extent in shape)
    return Mask(NOBODY, Box(low, high, shape))


narrow = numbers.map(lambda number: typed_scalar(number, int8))
scalars = st.one_of(numbers, numbers.map(Int32), numbers.map(Int64), narrow)
operands = st.one_of(indices(), scalars)


def elements(value: Any) -> Array:
    if isinstance(value, Index):
        return value.affine.array(np.dtype(np.int64))
    if isinstance(value, Mask):
        return value.box.array()
    return np.asarray(value)


def has_one_shape(left: Any, right: Any) -> bool:
    try:
        np.broadcast_shapes(elements(left).shape, elements(right).shape)
    except ValueError:
        return False
    return True


@given(st.sampled_from(sorted(INTEGERS)), operands, operands)
def test_what_is_known_of_integers_is_what_numpy_computes(op: str, left: Any, right: Any) -> None:
    assume(isinstance(left, Index) or isinstance(right, Index))
    assume(has_one_shape(left, right))
    assume(op not in ("floordiv", "mod", "quotient", "remainder") or elements(right).all())
    found = known_binary(op, left, right)
    if found is not None:
        assert isinstance(found, Index)
        np.testing.assert_array_equal(
            elements(found), INTEGERS[op](elements(left), elements(right))
        )
        wide = any(getattr(each, "dtype", None) is int64 for each in (left, right))
        assert found.dtype is (int64 if wide else int32)


@given(st.sampled_from(sorted(INTEGERS | COMPARISONS)), indices(), numbers)
def test_an_unsigned_scalar_makes_an_index_a_block(op: str, index: Index, number: int) -> None:
    scalar = typed_scalar(number, uint32)
    assert known_binary(op, index, scalar) is None
    assert known_binary(op, scalar, index) is None


@given(st.sampled_from(sorted(COMPARISONS)), operands, operands)
def test_what_is_known_of_comparisons_is_what_numpy_computes(
    op: str, left: Any, right: Any
) -> None:
    assume(isinstance(left, Index) or isinstance(right, Index))
    assume(has_one_shape(left, right))
    found = known_binary(op, left, right)
    if found is not None:
        expected = COMPARISONS[op](elements(left), elements(right))
        np.testing.assert_array_equal(elements(found), expected)


@given(
    st.sampled_from(["and", "or", "mul"]),
    masks(),
    st.one_of(masks(), st.booleans()),
    st.booleans(),
)
def test_what_is_known_of_masks_is_what_numpy_computes(
    op: str, mask: Mask, other: Any, swapped: bool
) -> None:
    assume(has_one_shape(mask, other))
    left, right = (other, mask) if swapped else (mask, other)
    found = known_binary(op, left, right)
    if found is not None:
        combine = np.logical_or if op == "or" else np.logical_and
        expected = combine(elements(left), elements(right))
        np.testing.assert_array_equal(np.broadcast_to(elements(found), expected.shape), expected)


@given(st.sampled_from([float32, int64, int4]), indices(), st.one_of(indices(), scalars))
def test_addresses_move_by_whole_elements(element: DType, places: Index, more: Any) -> None:
    assume(has_one_shape(places, more))
    start = Pointers(NOBODY, Affine(1000, (), ()), element)
    first = known_binary("add", start, places)
    assert isinstance(first, Pointers)
    found = known_binary("sub", first, more)
    assert isinstance(found, Pointers)
    step = max(1, element.bits // 8)
    expected = 1000 + step * (elements(places) - elements(more))
    np.testing.assert_array_equal(found.affine.array(np.dtype(np.int64)), expected)
    assert found.element is element


# -- kernels rely on these staying known ---------------------------------------------------------

N = Index(NOBODY, Affine(0, (1,), (8,)), int32)


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("mod", N, 8),
        ("floordiv", N, 8),
        ("minimum", N, 7),
        ("mul", N, 512),
        ("lt", N, 5),
        ("ge", 5, N),
        ("eq", N, 3),
    ],
)
def test_what_does_not_wrap_stays_known(op: str, left: Any, right: Any) -> None:
    assert known_binary(op, left, right) is not None


@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("mod", N, 5),  # wraps inside
        ("floordiv", N, 3),
        ("mul", N, N),
        ("xor", N, 1),
        ("add", N, 1.5),
        ("mul", N, 2**30),  # beyond int32
    ],
)
def test_what_is_no_index_any_more_becomes_a_block(op: str, left: Any, right: Any) -> None:
    assert known_binary(op, left, right) is None


@given(
    st.sampled_from([(4,), (3, 1), (3, 4)]), st.booleans(), indices(), st.one_of(indices(), numbers)
)
def test_a_choice_that_is_known_is_what_numpy_picks(
    shape: tuple[int, ...], holds: bool, x: Index, y: Any
) -> None:
    condition = Mask(NOBODY, Box.whole(shape) if holds else Box.empty(shape))
    wide = np.dtype(np.int64)
    left, right = x.affine.array(wide), y.affine.array(wide) if isinstance(y, Index) else y
    try:
        expected = np.where(condition.box.array(), left, right)
    except ValueError:
        return  # shapes that do not fit are refused, not known
    found = known_where(condition, x, y)
    if found is not None:
        np.testing.assert_array_equal(found.affine.array(wide), expected)
        assert found.shape == expected.shape


def test_a_choice_with_a_float_is_not_known() -> None:
    index = Index(NOBODY, Affine(0, (1,), (4,)), int32)
    assert known_where(Mask(NOBODY, Box.whole((4,))), index, 0.5) is None
    assert known_where(Mask(NOBODY, Box.whole((4,))), index, 7) is not None
