"""Scans, and reductions and scans with a function of the kernel's own.

Such a function is associative and works element by element, so it is called on whole slabs: a
reduction combines neighbours until one is left, a scan combines at distances 1, 2, 4, ... Both keep
the order of operands, and both are what lanes do; a float result may differ from a left fold in its
last bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import dtype_of, int1
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Meaning,
    Types,
    charge_for,
    check_blocks,
    signature,
    wrap_axis,
)
from tilewright.language.meaning.convert import from_compute, same, to_compute
from tilewright.language.meaning.elementwise import Function, converted
from tilewright.language.meaning.reduction import reduced_shape, sum_dtype

Arrays = tuple[Array, ...]


def _bind_cumulative(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """In f32 from one end to the other; each element of the result is rounded once."""
    axis, reverse, given = attributes
    (only,) = types
    axis = wrap_axis(op, types, axis, only.rank)
    dtype = sum_dtype(only.dtype, None if given is None else dtype_of(given, op))
    accumulate = _accumulate_function(op, axis, dtype.compute, is_bool=dtype is int1)
    function = _reversed(accumulate, axis) if reverse else accumulate
    convert, finish = to_compute(only.dtype, dtype), from_compute(dtype.compute, dtype)
    charges = (charge_for(op, only.num_elements, dtype),)
    return Bound(only.with_dtype(dtype), converted(function, (convert,), finish), charges)


def _accumulate_function(
    op: str, axis: int, dtype: np.dtype[Any], *, is_bool: bool
) -> Callable[[Array], Array]:
    ufunc: np.ufunc
    if is_bool:
        ufunc = np.logical_xor if op == "cumsum" else np.logical_and
    else:
        ufunc = np.add if op == "cumsum" else np.multiply
    return lambda array: ufunc.accumulate(array, axis=axis, dtype=dtype)


def _reversed(function: Callable[[Array], Array], axis: int) -> Callable[[Array], Array]:
    return lambda array: np.flip(function(np.flip(array, axis)), axis)


def _checked_combine(
    op: str, types: Types, combine: Function
) -> Callable[[Arrays, Arrays], Arrays]:
    """``combine(*left, *right)`` as a function of tuples; it keeps dtypes and shapes."""
    dtypes = tuple(each.dtype.storage for each in types)

    def checked(left: Arrays, right: Arrays) -> Arrays:
        returned = combine(*left, *right)
        found = returned if isinstance(returned, tuple) else (returned,)
        arrays = tuple(np.asarray(each) for each in found)
        if tuple(each.dtype for each in arrays) != dtypes:
            names = ", ".join(str(each.dtype) for each in arrays)
            expected = f"as many values as {signature(op, types)} takes, of the same dtypes"
            fix = "cast what the combine function returns"
            raise KernelTypeError(op, f"({names}) from the combine function", expected, fix)
        return tuple(np.broadcast_to(each, left[0].shape) for each in arrays)

    return checked


def _bind_reduce(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    axis, keep_dims, combine = attributes
    check_blocks(op, types)
    axis = None if axis is None else wrap_axis(op, types, axis, types[0].rank)
    shape = reduced_shape(types[0], axis, keep_dims=keep_dims)
    step = _checked_combine(op, types, combine)

    def run(*arrays: Array) -> Arrays | Array:
        flat = (
            array.reshape(-1) if axis is None else np.moveaxis(array, axis, 0) for array in arrays
        )
        slabs = tuple(flat)
        while (count := len(slabs[0])) > 1:
            even = count - count % 2
            pairs = step(_take(slabs, 0, even, 2), _take(slabs, 1, even, 2))
            rest = _take(slabs, even, count, 1)
            slabs = tuple(np.concatenate(both) for both in zip(pairs, rest, strict=True))
        results = tuple(slab[0].reshape(shape) for slab in slabs)
        return results if len(results) > 1 else results[0]

    return _bound(types, shape, run)


def _take(slabs: Arrays, start: int, stop: int, step: int) -> Arrays:
    return tuple(slab[start:stop:step] for slab in slabs)


def _bind_scan(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    axis, reverse, combine = attributes
    check_blocks(op, types)
    axis = wrap_axis(op, types, axis, types[0].rank)
    step = _checked_combine(op, types, combine)
    turn = (lambda array: np.flip(array, 0)) if reverse else same

    def run(*arrays: Array) -> Arrays | Array:
        slabs = tuple(turn(np.moveaxis(array, axis, 0)) for array in arrays)
        distance, count = 1, len(slabs[0])
        while distance < count:
            later = step(_take(slabs, 0, count - distance, 1), _take(slabs, distance, count, 1))
            first = _take(slabs, 0, distance, 1)
            slabs = tuple(np.concatenate(both) for both in zip(first, later, strict=True))
            distance *= 2
        results = tuple(np.moveaxis(turn(slab), 0, axis) for slab in slabs)
        return results if len(results) > 1 else results[0]

    return _bound(types, types[0].shape, run)


def _bound(types: Types, shape: tuple[int, ...], run: Function) -> Bound:
    """One pass over each operand; the combine function runs in the lanes of that pass."""
    results = tuple(block_type(each.dtype, shape) for each in types)
    charges = tuple(charge_for("scan", each.num_elements, each.dtype) for each in types)
    return Bound(results if len(results) > 1 else results[0], run, charges)


_ANY_NUMBER = tuple(range(1, 9))

SCANS: tuple[Meaning, ...] = (
    Meaning("cumsum", (1,), ("axis", "reverse", "dtype"), _bind_cumulative),
    Meaning("cumprod", (1,), ("axis", "reverse", "dtype"), _bind_cumulative),
    Meaning("reduce", _ANY_NUMBER, ("axis", "keep_dims", "combine"), _bind_reduce),
    Meaning("associative_scan", _ANY_NUMBER, ("axis", "reverse", "combine"), _bind_scan),
)
