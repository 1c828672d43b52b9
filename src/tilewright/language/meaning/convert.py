"""Elements from dtype to dtype, rounded once. The one place that knows how formats overflow.

Floats round to nearest even. A float beyond the largest becomes infinity, but float8e4nv, which has
none, saturates, infinities too (so do torch and the hardware that has the format). A float becomes
an integer by truncation; beyond the range it saturates and NaN is 0, on every platform alike.
Integers wrap.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.dtype import DType, dtype_of, float8e4nv, float16, float32, float64
from tilewright.language.meaning.bound import Array, Bound, Meaning, Types, charge_for, refuse

Convert: TypeAlias = Callable[[Array], Array]

LARGEST_E4NV = 448.0
_EXACT_INT_BITS = 53  # of a float64


def same(array: Array) -> Array:
    """No conversion."""
    return array


def chained(first: Convert, second: Convert) -> Convert:
    """One after the other; ``same`` costs nothing."""
    if first is same:
        return second
    if second is same:
        return first
    return lambda array: second(first(array))


def _cast_to(target: np.dtype[Any]) -> Convert:
    return lambda array: array.astype(target)


def _round_to_odd(array: Array) -> Array:
    """f64 to f32 so that a second rounding, to 22 bits or fewer, ends as one rounding would."""
    nearest = array.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = np.asarray(nearest).view(np.uint32)
    truncated = bits - (np.abs(back) > np.abs(array)).astype(np.uint32)
    odd: Array = (truncated | (back != array).astype(np.uint32)).view(np.float32)
    return odd


def _saturate_e4nv(array: Array) -> Array:
    return np.clip(array, -LARGEST_E4NV, LARGEST_E4NV)


@cache
def from_compute(source: np.dtype[Any], target: DType) -> Convert:
    """From floats, or from integers of the same or a wider kind, to the storage of ``target``."""
    if source == target.storage:
        return same
    if not target.is_floating():
        return _to_bool if target.is_bool() else _cast_to(target.storage)
    if target in (float64, float32, float16):
        return _cast_to(target.storage)
    convert = _cast_to(target.storage)
    if source == np.float64:
        convert = chained(_round_to_odd, convert)
    return chained(_saturate_e4nv, convert) if target is float8e4nv else convert


def _to_bool(array: Array) -> Array:
    """The lowest bit: arithmetic on int1 wraps, as on any integer."""
    return (array & 1).astype(np.bool_)


@cache
def to_compute(source: DType, computed: DType) -> Convert:
    """From the storage of ``source`` to the dtype that ``computed`` computes in.

    What ``computed`` cannot hold is rounded on the way, as if cast to it first.
    """
    target = computed.compute
    if source is computed or computed in (float32, float64):
        return same if source.storage == target else _cast_to(target)
    return chained(to_storage(source, computed), to_compute(computed, computed))


@cache
def to_storage(source: DType, target: DType) -> Convert:
    """A cast, from storage to storage."""
    if source is target:
        return same
    if source.is_floating():
        if target.is_floating():
            wide = source.compute
            return chained(to_compute(source, source), from_compute(wide, target))
        return chained(to_compute(source, source), _float_to_int(target))
    if target.is_bool():
        return lambda array: array != array.dtype.type(0)
    if target.is_int() or target in (float32, float64):
        return _cast_to(target.storage)
    return chained(_int_to_float64(source), from_compute(np.dtype(np.float64), target))


def _float_to_int(target: DType) -> Convert:
    if target.is_bool():
        return lambda array: array != 0
    low, high = target.get_int_min_value(), target.get_int_max_value()
    beyond = float(high + 1)  # a power of two, exact in any float

    def convert(array: Array) -> Array:
        if low - 1 < array.min() and array.max() < beyond:  # nearly always; NaN is never inside
            return array.astype(target.compute).astype(target.storage, copy=False)
        whole = np.trunc(array)
        inside = (whole >= low) & (whole < beyond)
        values = np.where(inside, whole, 0).astype(target.compute)
        values = np.where(whole >= beyond, target.compute.type(high), values)
        return np.where(whole < low, target.compute.type(low), values).astype(target.storage)

    return convert


def _int_to_float64(source: DType) -> Convert:
    """Exact, or rounded to odd so that a second rounding ends as one would."""
    if source.int_bitwidth < _EXACT_INT_BITS:
        return _cast_to(np.dtype(np.float64))
    kind = source.storage.type
    surplus, odd = kind(0x7FF), kind(0x800)  # 64 - 53 bits, and the lowest of those that stay
    limit = kind(2**_EXACT_INT_BITS)

    def convert(array: Array) -> Array:
        large = (array > limit) | (array < -limit) if source.signed else array > limit
        sticky = np.where(array & surplus, odd, kind(0))
        return np.where(large, (array & ~surplus) | sticky, array).astype(np.float64)

    return convert


def toward_zero(source: DType, target: DType) -> Convert:
    """A cast between floats that never grows a magnitude; beyond the largest it stays finite."""
    nearest = to_storage(source, target)
    wide = _cast_to(np.dtype(np.float64))
    bits = np.dtype(f"uint{target.primitive_bitwidth}")

    def convert(array: Array) -> Array:
        rounded = np.asarray(nearest(array))
        grown = (np.abs(wide(rounded)) > np.abs(wide(array))).astype(bits)
        shrunk: Array = (rounded.view(bits) - grown).view(target.storage)
        return shrunk

    return convert


# -- casts as ops, and bits read as another dtype ------------------------------------------------


def _bind_cast(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """``rounding`` is None, "rtne" or "rtz", and only for casts to a narrower float."""
    target, rounding = dtype_of(attributes[0], op), attributes[1]
    source = types[0].dtype
    if rounding not in (None, "rtne", "rtz"):
        found = f"fp_downcast_rounding={rounding!r}"
        raise KernelError(op, found, "'rtne', 'rtz' or None", "name one of them")
    floats = source.is_floating() and target.is_floating()
    narrows = floats and target.primitive_bitwidth < source.primitive_bitwidth
    if rounding is not None and not narrows:
        expected = f"a cast to a narrower float; {source!r} to {target!r} is none"
        refuse(op, types, expected, "drop fp_downcast_rounding")
    convert = (toward_zero if rounding == "rtz" else to_storage)(source, target)
    result = types[0].with_dtype(target)
    if convert is same:
        return Bound(result, convert, ())
    wider = max(source, target, key=lambda dtype: dtype.primitive_bitwidth)
    return Bound(result, convert, (charge_for("cast", result.num_elements, wider),))


def _bind_bitcast(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    target, source = dtype_of(attributes[0], op), types[0].dtype
    result = types[0].with_dtype(target)
    if target is source:
        return Bound(result, same, ())
    if target.primitive_bitwidth != source.primitive_bitwidth:
        expected = f"a dtype as wide as {target!r}, {target.primitive_bitwidth} bits"
        refuse(op, types, expected, "cast the values instead, or choose another dtype")

    def view(array: Array) -> Array:
        return np.ascontiguousarray(array).reshape(np.shape(array)).view(target.storage)

    return Bound(result, view, ())


CASTS: tuple[Meaning, ...] = (
    Meaning("cast", (1,), ("dtype", "rounding"), _bind_cast),
    Meaning("bitcast", (1,), ("dtype",), _bind_bitcast),
)
