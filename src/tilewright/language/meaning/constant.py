"""Blocks that are made of numbers: constants, full blocks, ranges."""

from typing import Any

import numpy as np

from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, dtype_of, int32
from tilewright.language.meaning.bound import Array, Bound, Charge, Meaning, refuse
from tilewright.language.meaning.convert import from_compute, to_storage
from tilewright.language.promote import Scalar

Types = tuple[BlockType, ...]
_FLOAT64 = np.dtype(np.float64)


def constant(value: Scalar, dtype: DType, where: str = "constant") -> Array:
    """``value`` as a scalar block of ``dtype``; an integer dtype takes what lies in its range.

    >>> from tilewright.language.dtype import float16
    >>> constant(7, float16)
    array(7., dtype=float16)
    """
    if dtype.is_floating():
        with np.errstate(all="ignore"):
            return np.asarray(from_compute(_FLOAT64, dtype)(np.array(float(value))))
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    whole = 0 if value == 0 else value  # 0.0 is fine
    if isinstance(whole, float) or not low <= whole <= high:
        found = f"the number {value!r} for {dtype!r}"
        fix = "cast the block to a wider dtype first"
        raise KernelTypeError(where, found, f"an integer from {low} to {high}", fix)
    return np.asarray(np.array(whole, dtype.compute).astype(dtype.storage))


def _bind_full(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Of a number (``value``), or with an operand, a scalar block, of that."""
    shape, value, dtype = tuple(attributes[0]), attributes[1], dtype_of(attributes[2], op)
    result = block_type(dtype, shape)
    charges = (Charge(op, result.num_elements, dtype),) if shape else ()
    if types:
        if types[0].num_elements != 1:
            refuse(op, types, "a scalar to fill the block with", "use broadcast_to")
        cast = to_storage(types[0].dtype, dtype)
        return Bound(result, lambda a: np.broadcast_to(cast(a).reshape(()), shape), charges)
    block = np.full(shape, constant(value, dtype, op), dtype.storage)
    block.flags.writeable = False  # all runs share it
    return Bound(result, lambda: block, charges)


def _bind_arange(op: str, _: Types, attributes: tuple[Any, ...]) -> Bound:
    start, end = attributes
    whole = isinstance(start, int) and isinstance(end, int)
    if not whole or not -(2**31) <= start < end <= 2**31:
        found, fix = f"arange({start!r}, {end!r})", "give two int32 with start < end"
        raise KernelError(op, found, "a range of int32", fix)
    extent = end - start
    if extent & (extent - 1):
        found = f"arange({start}, {end}) of {extent} elements"
        fix = "round up to a power of two and mask what is too much"
        raise KernelError(op, found, "a power of two", fix)
    block = np.arange(start, end, dtype=np.int32)
    block.flags.writeable = False  # all runs share it
    return Bound(block_type(int32, (extent,)), lambda: block, (Charge(op, extent, int32),))


CONSTANTS: tuple[Meaning, ...] = (
    Meaning("full", (0, 1), ("shape", "value", "dtype"), _bind_full),
    Meaning("arange", (0,), ("start", "end"), _bind_arange),
)
