"""Dtypes of numbers beside others, and of indices."""

from typing import Any

from tilewright.errors import KernelTypeError
from tilewright.language.affine import Affine
from tilewright.language.dtype import DType, int32, int64
from tilewright.language.promote import computation_dtype, scalar_dtype
from tilewright.language.scalar import INT32_LIMIT, Scalar

__all__ = ("constant_dtype", "holds_index")


def constant_dtype(op: str, value: Any, beside: Any) -> DType:
    """Return the dtype of a number beside another operand of an op.

    A scalar of the language has its dtype; a number in the kernel's text is weak.
    """
    if isinstance(value, Scalar):
        return value.dtype
    dtype = getattr(beside, "dtype", None)
    if type(dtype) is not DType:
        return scalar_dtype(value, op)
    return _holding(op, value, computation_dtype(op, dtype, value))


def _holding(op: str, value: Any, dtype: DType) -> DType:
    """A dtype that has a weak integer: beside int8, 300 means nothing."""
    if dtype.is_floating() or dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
        return dtype
    fix = f"convert the block, or write tl.full([], {value}, dtype)"
    raise KernelTypeError(op, f"{value} beside {dtype!r}", f"a number that fits {dtype}", fix)


def holds_index(dtype: DType, affine: Affine) -> bool:
    """Return whether values stay an index under a dtype: none of them wraps."""
    if dtype is int32:
        return affine.low >= -INT32_LIMIT and affine.high < INT32_LIMIT
    return dtype is int64
