"""Ops along an axis that keep it: scans, sorting, counting, picking by index.

A function of the kernel is associative and works element by element, so it is called on whole
slabs: a reduction combines neighbours until one is left, a scan combines at distances 1, 2, 4, ...
Both keep the order of operands, and both are what lanes do; a float result may differ from a left
fold in its last bits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, dtype_of, int1, int32
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    Meaning,
    Types,
    charge_for,
    check_blocks,
    check_count,
    need_integers,
    refuse,
    signature,
    wrap_axis,
)
from tilewright.language.meaning.convert import from_compute, same, to_compute
from tilewright.language.meaning.elementwise import Function, converted
from tilewright.language.meaning.reduction import extreme_dtype, reduced_shape, sum_dtype

Arrays = tuple[Array, ...]


def _bind_cumulative(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """In f32 from one end to the other; each element of the result is rounded once."""
    axis, reverse, given = attributes
    (only,) = types
    axis = wrap_axis(op, types, axis, only.rank)
    dtype = sum_dtype(only.dtype, None if given is None else dtype_of(given, op))
    ufunc: np.ufunc = np.add if op == "cumsum" else np.multiply
    if dtype is int1:
        ufunc = np.logical_xor if op == "cumsum" else np.logical_and

    def function(array: Array) -> Array:
        if not reverse:
            return ufunc.accumulate(array, axis=axis, dtype=dtype.compute)
        backwards = np.flip(array, axis)
        return np.flip(ufunc.accumulate(backwards, axis=axis, dtype=dtype.compute), axis)

    convert, finish = to_compute(only.dtype, dtype), from_compute(dtype.compute, dtype)
    charges = (charge_for(op, only.num_elements, dtype),)
    return Bound(only.with_dtype(dtype), converted(function, (convert,), finish), charges)


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


def _bind_sort(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """NaN counts as larger than all numbers."""
    axis, descending = attributes
    (only,) = types
    axis = wrap_axis(op, types, -1 if axis is None else axis, only.rank)
    return _bind_sorted(op, only, only.dtype, axis, only.shape[axis], descending=descending)


def _bind_topk(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """The k largest, or smallest, in order. Fewer than all come in the dtype of a maximum."""
    k, axis, descending = attributes
    (only,) = types
    axis = wrap_axis(op, types, -1 if axis is None else axis, only.rank)
    check_count(op, "k", k)
    extent = only.shape[axis]
    if k > extent or k & (k - 1):
        expected = f"a power of two up to the extent {extent}"
        raise KernelError(op, f"k={k}", expected, "round k up and drop what is too much")
    dtype = only.dtype if k == extent > 1 else extreme_dtype(only.dtype)
    return _bind_sorted(op, only, dtype, axis, k, descending=descending)


def _bind_sorted(
    op: str, only: BlockType, dtype: DType, axis: int, k: int, *, descending: bool
) -> Bound:
    head = (slice(None),) * axis + (slice(0, k),)

    def function(array: Array) -> Array:
        ordered = np.sort(array, axis=axis)
        return (np.flip(ordered, axis) if descending else ordered)[head]

    result = block_type(dtype, (*only.shape[:axis], k, *only.shape[axis + 1 :]))
    run = converted(function, (to_compute(only.dtype, dtype),), from_compute(dtype.compute, dtype))
    return Bound(result, run, (_sort_charge(op, only, only.shape[axis]),))


def _sort_charge(op: str, only: BlockType, extent: int) -> Charge:
    """One row by the law of sorting. Rows of a block share the lanes: the same stages, wider."""
    rows = only.num_elements // extent
    if rows == 1 or extent == 1:
        return charge_for(op, only.num_elements, only.dtype)
    levels = (extent - 1).bit_length()
    exchanges = rows * 2**levels // 2
    return charge_for("select", exchanges, only.dtype, times=levels * (levels + 1) // 2)


def _bind_bitonic_merge(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """The last stages of a sorting network: rows that rise and then fall come out sorted."""
    axis, descending = attributes
    (only,) = types
    axis = wrap_axis(op, types, -1 if axis is None else axis, only.rank)
    extent = only.shape[axis]
    if axis != only.rank - 1 or extent & (extent - 1):
        refuse(op, types, "a power of two elements along the last axis", "reshape or permute")

    def merge(array: Array) -> Array:
        distance = extent // 2
        while distance:
            pairs = array.reshape(*array.shape[:-1], -1, 2, distance)
            first, second = pairs[..., 0, :], pairs[..., 1, :]
            swap = (first > second) != bool(descending)
            swapped = np.where(swap, second, first), np.where(swap, first, second)
            array = np.stack(swapped, axis=-2).reshape(array.shape)
            distance //= 2
        return array

    dtype = only.dtype
    convert, finish = to_compute(dtype, dtype), from_compute(dtype.compute, dtype)
    stages = max(1, extent.bit_length() - 1)
    charge = charge_for("select", max(1, only.num_elements // 2), dtype, times=stages)
    return Bound(only, converted(merge, (convert,), finish), (charge,))


def _bind_gather(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: source, index. An index outside the axis is an error when the op runs."""
    source, index = types
    axis = wrap_axis(op, types, attributes[0], source.rank)
    need_integers(op, types, index.dtype)
    others = [n for n in range(source.rank) if n != axis]
    if index.rank != source.rank or any(index.shape[n] != source.shape[n] for n in others):
        expected = f"an index shaped as the source, but for axis {axis}"
        refuse(op, types, expected, "broadcast the index")
    extent = source.shape[axis]
    whole = to_compute(index.dtype, index.dtype)

    def run(values: Array, positions: Array) -> Array:
        positions = whole(positions)
        low, high = np.minimum.reduce(positions, None), np.maximum.reduce(positions, None)
        if low < 0 or high >= extent:
            found = f"indices from {low} to {high}"
            fix = "clamp or mask the index"
            raise KernelError(op, found, f"from 0 to {extent - 1} along axis {axis}", fix)
        if source.rank == 1:
            return values[positions]  # a tenth of the time
        return np.take_along_axis(values, positions, axis)

    result = block_type(source.dtype, index.shape)
    return Bound(result, run, (Charge(op, result.num_elements, result.dtype),))


def _bind_histogram(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: values, and optionally a mask. What lies outside the bins counts nowhere."""
    (num_bins,) = attributes
    check_count(op, "num_bins", num_bins)
    values = types[0]
    if values.rank != 1 or not values.dtype.is_int() or values.dtype.primitive_bitwidth != 32:
        refuse(op, types, "one axis of 32-bit integers", "ravel and cast the block")
    if len(types) == 2 and (types[1].dtype is not int1 or types[1].shape not in ((), values.shape)):
        refuse(op, types, "a mask of int1 shaped as the values", "compare, or broadcast the mask")

    def run(numbers: Array, mask: Array | None = None) -> Array:
        inside = (numbers >= 0) & (numbers < num_bins)
        counted = numbers[inside if mask is None else inside & mask]
        return np.bincount(counted, minlength=num_bins).astype(np.int32)

    # each element adds to its bin in one pass, then the lanes' counts are added up
    charges = (charge_for("sum", values.num_elements, int32),)
    return Bound(block_type(int32, (num_bins,)), run, charges)


_ANY_NUMBER = tuple(range(1, 9))

ALONG_AXIS: tuple[Meaning, ...] = (
    Meaning("cumsum", (1,), ("axis", "reverse", "dtype"), _bind_cumulative),
    Meaning("cumprod", (1,), ("axis", "reverse", "dtype"), _bind_cumulative),
    Meaning("reduce", _ANY_NUMBER, ("axis", "keep_dims", "combine"), _bind_reduce),
    Meaning("associative_scan", _ANY_NUMBER, ("axis", "reverse", "combine"), _bind_scan),
    Meaning("sort", (1,), ("axis", "descending"), _bind_sort),
    Meaning("topk", (1,), ("k", "axis", "descending"), _bind_topk),
    Meaning("bitonic_merge", (1,), ("axis", "descending"), _bind_bitonic_merge),
    Meaning("gather", (2,), ("axis",), _bind_gather),
    Meaning("histogram", (1, 2), ("num_bins",), _bind_histogram),
)
