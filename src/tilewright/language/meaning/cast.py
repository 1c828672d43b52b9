"""Casts from every dtype to every other, and bits read as another dtype."""

from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.meaning.bound import Array, Bound, Meaning, refuse
from tilewright.language.meaning.convert import Convert, same, to_storage, toward_zero
from tilewright.language.meaning.elementwise import charge_for

Types = tuple[BlockType, ...]


def _bind_cast(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """``rounding`` is None, "rtne" or "rtz", and only for casts to a narrower float."""
    target, rounding = dtype_of(attributes[0], op), attributes[1]
    source = types[0].dtype
    convert = _convert(op, types, target, rounding)
    result = types[0].with_dtype(target)
    if convert is same:
        return Bound(result, convert, ())
    wider = max(source, target, key=lambda dtype: dtype.primitive_bitwidth)
    return Bound(result, convert, (charge_for("cast", result.num_elements, wider),))


def _convert(op: str, types: Types, target: DType, rounding: str | None) -> Convert:
    source = types[0].dtype
    if rounding not in (None, "rtne", "rtz"):
        found = f"fp_downcast_rounding={rounding!r}"
        raise KernelError(op, found, "'rtne', 'rtz' or None", "name one of them")
    floats = source.is_floating() and target.is_floating()
    narrows = floats and target.primitive_bitwidth < source.primitive_bitwidth
    if rounding is not None and not narrows:
        expected = f"a cast to a narrower float; {source!r} to {target!r} is none"
        refuse(op, types, expected, "drop fp_downcast_rounding")
    return toward_zero(source, target) if rounding == "rtz" else to_storage(source, target)


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
