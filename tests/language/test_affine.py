from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import KernelTypeError
from tilewright.language.affine import Affine, Box, broadcast_shapes

Array = np.ndarray[Any, Any]
WIDE = np.dtype(np.int64)

shapes = st.lists(st.integers(1, 5), min_size=0, max_size=3).map(tuple)


@st.composite
def affines(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> Affine:
    extents = draw(shapes) if shape is None else shape
    strides = tuple(draw(st.integers(-7, 7)) for _ in extents)
    return Affine(draw(st.integers(-40, 40)), strides, extents)


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> Box:
    lows = tuple(draw(st.integers(0, extent)) for extent in shape)
    highs = tuple(draw(st.integers(low, extent)) for low, extent in zip(lows, shape, strict=True))
    return Box(lows, highs, shape)


def array(affine: Affine) -> Array:
    return affine.array(WIDE)


@given(affines())
def test_the_range_is_that_of_the_values(affine: Affine) -> None:
    assert (affine.low, affine.high) == (array(affine).min(), array(affine).max())


@given(affines(), st.data())
def test_a_sum_is_the_sum_of_the_values(affine: Affine, data: st.DataObject) -> None:
    wide = tuple(data.draw(st.sampled_from((1, extent))) for extent in affine.shape)
    other = data.draw(affines(shape=wide))
    np.testing.assert_array_equal(array(affine.plus(other)), array(affine) + array(other))


@given(affines(), st.integers(-9, 9))
def test_shifting_and_scaling_are_exact(affine: Affine, number: int) -> None:
    np.testing.assert_array_equal(array(affine.shifted(number)), array(affine) + number)
    np.testing.assert_array_equal(array(affine.scaled(number)), array(affine) * number)


@given(affines(), st.integers(1, 12))
def test_a_quotient_or_remainder_is_exact_or_not_known(affine: Affine, divisor: int) -> None:
    for found, expected in (
        (affine.divided(divisor), array(affine) // divisor),
        (affine.remainder(divisor), array(affine) % divisor),
    ):
        if found is not None:
            assert affine.low >= 0
            np.testing.assert_array_equal(array(found), expected)


@given(st.integers(0, 9), st.integers(2, 64), st.integers(0, 60))
def test_a_remainder_that_does_not_wrap_stays_affine(
    quotient: int, divisor: int, start: int
) -> None:
    extent = max(1, divisor - start % divisor)
    affine = Affine(quotient * divisor + start % divisor, (1,), (extent,))
    assert affine.remainder(divisor) is not None
    assert affine.divided(divisor) is not None


@given(affines(), st.integers(-30, 30))
def test_an_extreme_is_exact_or_not_known(affine: Affine, bound: int) -> None:
    for found, expected in (
        (affine.at_most(bound), np.minimum(array(affine), bound)),
        (affine.at_least(bound), np.maximum(array(affine), bound)),
    ):
        if found is not None:
            np.testing.assert_array_equal(array(found), expected)


@given(affines(), st.integers(-60, 60))
def test_where_values_lie_below_a_bound_is_exact_or_not_known(affine: Affine, bound: int) -> None:
    box = affine.below(bound)
    if box is not None:
        np.testing.assert_array_equal(box.array(), array(affine) < bound)


@given(st.integers(-40, 40), st.integers(-7, 7), st.integers(1, 9), st.integers(-60, 60))
def test_on_one_axis_it_is_always_known(base: int, stride: int, extent: int, bound: int) -> None:
    assert Affine(base, (stride,), (extent,)).below(bound) is not None


@given(affines(), st.data())
def test_expanding_broadcasting_and_permuting_move_values_as_numpy_does(
    affine: Affine, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(affine.shape)))
    expanded = affine.expanded(axis)
    np.testing.assert_array_equal(array(expanded), np.expand_dims(array(affine), axis))
    target = tuple(3 if extent == 1 else extent for extent in expanded.shape)
    spread = np.broadcast_to(array(expanded), target)
    np.testing.assert_array_equal(array(expanded.broadcast(target)), spread)
    order = tuple(data.draw(st.permutations(range(len(affine.shape)))))
    np.testing.assert_array_equal(array(affine.permuted(order)), array(affine).transpose(order))


@given(shapes, st.data())
def test_masks_combine_as_their_elements_do(shape: tuple[int, ...], data: st.DataObject) -> None:
    left, right = data.draw(boxes(shape)), data.draw(boxes(shape))
    np.testing.assert_array_equal(left.both(right).array(), left.array() & right.array())
    either = left.either(right)
    if either is not None:
        np.testing.assert_array_equal(either.array(), left.array() | right.array())
    inverted = left.inverted()
    if inverted is not None:
        np.testing.assert_array_equal(inverted.array(), ~left.array())
    assert left.is_empty == (not left.array().any())
    assert left.is_whole == bool(left.array().all() and left.high == left.shape)


@given(shapes, st.data())
def test_a_mask_spreads_as_its_elements_do(shape: tuple[int, ...], data: st.DataObject) -> None:
    box = data.draw(boxes(shape))
    target = (2, *(4 if extent == 1 else extent for extent in shape))
    spread = np.broadcast_to(box.array(), target)
    np.testing.assert_array_equal(box.broadcast(target).array(), spread)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KernelTypeError, match=r"\(4,\) and \(3,\)"):
        broadcast_shapes((4,), (3,))
