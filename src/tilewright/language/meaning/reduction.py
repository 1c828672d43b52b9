"""Reductions along an axis, or over the whole block."""

from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, dtype_of, float32, int1, int32, uint32
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Meaning,
    Types,
    charge_for,
    need_floats,
    need_integers,
    refuse,
    wrap_axis,
)
from tilewright.language.meaning.convert import from_compute, same, to_compute
from tilewright.language.meaning.elementwise import Function, converted

_maximum: Function = np.maximum.reduce  # called by place, which its types do not know
_COST_OPS = {"reduce_or": "any"}  # the others have a line of their name


def reduced_shape(only: BlockType, axis: int | None, *, keep_dims: bool) -> tuple[int, ...]:
    """What is left of the shape; ``axis`` None reduces all axes."""
    if axis is None:
        return (1,) * only.rank if keep_dims else ()
    return only.shape[:axis] + ((1,) if keep_dims else ()) + only.shape[axis + 1 :]


def sum_dtype(source: DType, dtype: DType | None) -> DType:
    """What a sum is in, unless the kernel says: integers below 32 bits become 32 bits wide."""
    if dtype is not None:
        return dtype
    if source.is_int() and source.int_bitwidth < int32.int_bitwidth:
        return int32 if source.signed else uint32
    return source


def extreme_dtype(source: DType) -> DType:
    """What a maximum is in: f32 or int32 for narrower dtypes."""
    if source.primitive_bitwidth >= float32.primitive_bitwidth:
        return source
    return float32 if source.is_floating() else int32


def _bind_along(
    op: str,
    types: Types,
    attributes: tuple[Any, ...],
    reduce: Function,
    dtype: DType,
    adds_in: np.dtype[Any] | None = None,  # by default what NumPy adds ``dtype.compute`` in
) -> Bound:
    """``reduce(array, axis, dtype, out, keepdims)`` where ``dtype`` computes."""
    only, axis, keep_dims = types[0], attributes[0], attributes[1]
    axis = None if axis is None else wrap_axis(op, types, axis, only.rank)

    def function(array: Array) -> Any:
        return reduce(array, axis, adds_in, None, keep_dims)  # by place: names take a third longer

    convert, finish = to_compute(only.dtype, dtype), from_compute(dtype.compute, dtype)
    result = block_type(dtype, reduced_shape(only, axis, keep_dims=keep_dims))
    charges = (charge_for(_COST_OPS.get(op, op), only.num_elements, dtype),)
    return Bound(result, converted(function, (convert,), finish), charges)


def _bind_sum(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Rounded once, at the end; the order in which f32 adds up is NumPy's."""
    given = None if attributes[2] is None else dtype_of(attributes[2], op)
    dtype = sum_dtype(types[0].dtype, given)
    if dtype is int1:  # one bit: a sum is its parity
        return _bind_along(op, types, attributes, np.logical_xor.reduce, dtype)
    adds_in = dtype.compute if dtype.is_int() else None  # NumPy would widen integers
    return _bind_along(op, types, attributes, np.add.reduce, dtype, adds_in)


def _bind_bits(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    dtype = types[0].dtype
    need_integers(op, types, dtype)
    reduce = np.bitwise_xor.reduce if op == "xor_sum" else np.bitwise_or.reduce
    return _bind_along(op, types, attributes, reduce, dtype)


def _bind_extreme(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """A number beats NaN. With ``return_indices`` the dtype stays and an index comes along."""
    axis, keep_dims, return_indices = attributes
    if return_indices:
        return _bind_with_index(op, types, (axis, keep_dims))
    dtype = extreme_dtype(types[0].dtype)
    return _bind_along(op, types, attributes, _extreme_function(op, dtype), dtype)


def _extreme_function(op: str, dtype: DType) -> Function:
    if dtype.is_floating():
        return greatest_number if op.endswith("max") else least_number
    return np.maximum.reduce if op.endswith("max") else np.minimum.reduce


def greatest_number(
    array: Array, axis: int | None, dtype: None = None, out: None = None, keepdims: bool = False
) -> Any:
    """``np.maximum.reduce``, but a number beats NaN.

    ``np.fmax.reduce`` loses numbers beside a signalling NaN on some processors.
    """
    found = _maximum(array, axis, dtype, out, keepdims)
    squares = np.vdot(found, found) if isinstance(found, np.ndarray) else found  # NaN if one is
    if squares == squares:  # most blocks have none
        return found
    is_nan = np.isnan(array)
    numbers = _maximum(np.where(is_nan, -np.inf, array), axis, dtype, out, keepdims)
    return np.where(is_nan.all(axis, keepdims=keepdims), found, numbers.astype(array.dtype))


def least_number(
    array: Array, axis: int | None, dtype: None = None, out: None = None, keepdims: bool = False
) -> Any:
    """``np.minimum.reduce``, but a number beats NaN."""
    return -greatest_number(-array, axis, dtype, out, keepdims)


def _bind_with_index(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """The extreme and the lowest of the indices that have it; all NaN: NaN and index 0."""
    axis, keep_dims = attributes
    (only,) = types
    if axis is None and only.rank != 1:
        refuse(op, types, "an axis for indices of a block with several", "name the axis")
    axis = wrap_axis(op, types, 0 if axis is None else axis, only.rank)
    shape = reduced_shape(only, axis, keep_dims=keep_dims)
    extreme = _extreme_function(op, only.dtype) if only.dtype.is_floating() else None
    position = np.argmin if op.endswith("min") and extreme is None else np.argmax
    convert = to_compute(only.dtype, only.dtype)

    def run(array: Array) -> tuple[Array, Array]:
        searched = convert(array)
        if extreme is not None:  # a number beats NaN
            searched = searched == extreme(searched, axis=axis, keepdims=True)
        index = np.expand_dims(position(searched, axis=axis), axis)
        value = np.take_along_axis(array, index, axis)
        return value.reshape(shape), index.astype(np.int32).reshape(shape)

    result = (block_type(only.dtype, shape), block_type(int32, shape))
    cost_op = op if op.startswith("arg") else f"arg{op}"
    return Bound(result, run, (charge_for(cost_op, only.num_elements, only.dtype),))


def _bind_position(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    both = _bind_with_index(op, types, attributes)
    result: tuple[BlockType, ...] = both.type if isinstance(both.type, tuple) else (both.type,)
    run = both.run
    return Bound(result[1], lambda array: run(array)[1], both.charges)


def _bind_softmax(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Along ``axis``, by default the first. Narrow floats give f32, as their maximum does."""
    (only,) = types
    need_floats(op, types, only.dtype)
    axis = wrap_axis(op, types, 0 if attributes[0] is None else attributes[0], only.rank)
    dtype = only.dtype if only.dtype.primitive_bitwidth >= 32 else float32

    def softmax(array: Array) -> Any:
        powers = np.exp(array - greatest_number(array, axis, keepdims=True))
        return np.divide(powers, np.add.reduce(powers, axis=axis, keepdims=True), out=powers)

    run = converted(softmax, (to_compute(only.dtype, dtype),), same)
    ops = ("max", "sub", "exp", "sum", "div")
    charges = tuple(charge_for(each, only.num_elements, dtype) for each in ops)
    return Bound(only.with_dtype(dtype), run, charges)


REDUCTIONS: tuple[Meaning, ...] = (
    Meaning("sum", (1,), ("axis", "keep_dims", "dtype"), _bind_sum),
    Meaning("xor_sum", (1,), ("axis", "keep_dims"), _bind_bits),
    Meaning("reduce_or", (1,), ("axis", "keep_dims"), _bind_bits),
    Meaning("max", (1,), ("axis", "keep_dims", "return_indices"), _bind_extreme),
    Meaning("min", (1,), ("axis", "keep_dims", "return_indices"), _bind_extreme),
    Meaning("argmax", (1,), ("axis", "keep_dims"), _bind_position),
    Meaning("argmin", (1,), ("axis", "keep_dims"), _bind_position),
    Meaning("softmax", (1,), ("axis",), _bind_softmax),
)
