from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.meaning.values import (
    bound_for,
    charges_of,
    evaluate,
    random_block,
    result_of,
    seeds,
)
from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DTYPES, float32
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def blocks(draw: st.DrawFn, shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES) -> Array:
    dtype = draw(st.sampled_from(DTYPES))
    return random_block(dtype, draw(shapes), np.random.default_rng(draw(seeds)))


def same_bits(found: Array, expected: Array) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


@given(blocks(), st.data())
def test_a_reshape_keeps_row_major_order(values: Array, data: st.DataObject) -> None:
    factors = [extent for extent in values.shape if extent > 1]
    shape = tuple(data.draw(st.permutations([*factors, 1])))
    same_bits(result_of("reshape", values, attributes=(shape,)), values.reshape(shape))
    assert bound_for("reshape", values, attributes=(shape,)).charges == ()


@given(blocks(), st.data())
def test_a_permutation_of_axes_is_numpys(values: Array, data: st.DataObject) -> None:
    axes = tuple(data.draw(st.permutations(range(values.ndim))))
    for op in ("permute", "trans"):
        same_bits(result_of(op, values, attributes=(axes,)), values.transpose(axes))
    charges = bound_for("permute", values, attributes=(axes,)).charges
    moves = [axis for axis in axes if values.shape[axis] > 1]
    assert bool(charges) == (moves != sorted(moves))


@given(blocks(st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple)))
def test_trans_without_axes_swaps_the_last_two(values: Array) -> None:
    same_bits(result_of("trans", values, attributes=(None,)), np.swapaxes(values, -1, -2))


@given(blocks(), st.data())
def test_new_axes_have_extent_one_and_squeeze_takes_them_back(
    values: Array, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-values.ndim - 1, values.ndim))
    expanded = result_of("expand_dims", values, attributes=(axis,))
    same_bits(expanded, np.expand_dims(values, axis))
    same_bits(result_of("squeeze", expanded, attributes=(axis,)), values)


def test_several_axes_are_counted_in_the_result() -> None:
    values = np.zeros((3, 4), np.float32)
    assert result_of("expand_dims", values, attributes=((0, -1),)).shape == (1, 3, 4, 1)
    with pytest.raises(KernelError, match="each axis once"):
        bound_for("expand_dims", values, attributes=((0, -4),))


@given(blocks(), st.data())
def test_extents_of_one_are_repeated(values: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, values.ndim - 1))
    thin = np.take(values, [0], axis)
    same_bits(
        result_of("broadcast_to", thin, attributes=(values.shape,)),
        np.broadcast_to(thin, values.shape),
    )


@given(blocks(), st.data())
def test_join_and_split_are_inverses(values: Array, data: st.DataObject) -> None:
    other = values[tuple(slice(None, None, -1) for _ in values.shape)]
    joined = result_of("join", values, other)
    same_bits(joined, np.stack((values, other), -1))
    first, second = evaluate(bound_for("split", joined), joined)
    same_bits(first, values)
    same_bits(second, other)
    flat = result_of("interleave", values, other)
    same_bits(flat, joined.reshape(*values.shape[:-1], -1))
    axis = data.draw(st.integers(-values.ndim, values.ndim - 1))
    same_bits(
        result_of("cat", values, other, attributes=(axis,)), np.concatenate((values, other), axis)
    )


def test_scalars_join_to_a_pair() -> None:
    left, right = np.array(1.0), np.array(2.0)
    for op in ("join", "interleave"):
        np.testing.assert_array_equal(result_of(op, left, right), [1.0, 2.0])


@given(blocks(), st.data())
def test_flip_turns_one_axis_round(values: Array, data: st.DataObject) -> None:
    axis = data.draw(st.none() | st.integers(-values.ndim, values.ndim - 1))
    expected = np.flip(values, -1 if axis is None else axis)
    same_bits(result_of("flip", values, attributes=(axis,)), expected)


Refused = tuple[str, tuple[tuple[int, ...], ...], tuple[Any, ...], str]
REFUSED: list[Refused] = [
    ("reshape", ((4, 4),), ((3, 5),), "a block of 15 elements"),
    ("reshape", ((4, 4),), ((-1, 4),), "a whole number from 1 up"),
    ("broadcast_to", ((4, 4),), ((4, 8),), "extents that are 1 or those of"),
    ("broadcast_to", ((4,),), ((4, 4),), "extents that are 1 or those of"),
    ("permute", ((4, 4),), ((0, 0),), "each of the axes 0 to 1 once"),
    ("permute", ((4, 4),), ((1,),), "each of the axes 0 to 1 once"),
    ("trans", ((4,),), (None,), "two axes or more"),
    ("squeeze", ((4, 1),), (0,), "an extent of 1 at axis 0"),
    ("split", ((2, 4),), (), "a last axis of 2"),
    ("split", ((),), (), "a last axis of 2"),
    ("cat", ((2, 4), (2, 2)), (0,), "operands of one shape"),
    ("cat", ((), ()), (0,), "a block with axes"),
    ("flip", ((2, 4),), (2,), "an axis from -2 to 1"),
    ("expand_dims", ((2, 4),), (4,), "an axis from -3 to 2"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}-{case[2]}")
def test_what_does_not_fit_is_refused(case: Refused) -> None:
    op, shapes, attributes, message = case
    with pytest.raises(KernelError, match=message):
        MEANINGS[op].bind(tuple(block_type(float32, shape) for shape in shapes), attributes)


@pytest.mark.parametrize("op", ["join", "interleave"])
def test_only_blocks_of_one_dtype_join(op: str) -> None:
    with pytest.raises(KernelTypeError, match="blocks of one dtype"):
        bound_for(op, np.zeros(4, np.float32), np.zeros(4, np.int32))


@pytest.mark.parametrize("op", ["trans", "join", "split", "cat", "flip"])
def test_what_moves_is_charged_by_its_stored_dtype(op: str) -> None:
    values = np.zeros((8, 2), np.float16)
    operands = (values,) * MEANINGS[op].num_operands[0]
    attributes = {"trans": (None,), "cat": (0,), "flip": (0,)}.get(op, ())
    (charge,) = charges_of(op, *operands, attributes=attributes)
    assert charge.elements == prod(values.shape) * len(operands)
    assert charge.dtype.storage == np.float16
