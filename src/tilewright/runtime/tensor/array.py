"""Values and indices of NumPy as a tensor takes them.

Values become elements of a dtype as kernels convert them. Indices mean what they mean to NumPy:
integers, slices of any step, ellipsis, None, arrays of integers and masks. So a part of a tensor is
read as one box and then indexed as an array.
"""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import TensorError
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.meaning.convert import to_storage
from tilewright.runtime.placement.policy import Box

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The least box that has all touched elements, and which of them they are."""

    box: Box
    key: tuple[Any, ...]  # an index of an array of the box's shape
    shape: tuple[int, ...]  # of what the index gives

    @property
    def box_shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.box))


def whole_box(shape: Sequence[int]) -> Box:
    return tuple(map(range, shape))


def resolve_index(where: str, key: Any, shape: tuple[int, ...]) -> Selection:
    """Of a tensor of this shape. What NumPy would refuse is a TensorError.

    >>> selection = resolve_index("tensor 'a'", (slice(None, None, -2), [4, 2]), (5, 6))
    >>> selection.box, selection.shape
    ((range(0, 5), range(2, 5)), (3, 2))
    """
    entries = list(_full_key(where, key, len(shape)))
    box: list[range] = []
    inner: list[Any] = []
    for entry in entries:
        if entry is None:
            inner.append(None)
            continue
        extent, inside = _resolve_entry(f"{where}, axis {len(box)}", entry, shape[len(box)])
        box.append(extent)
        inner.append(inside)
    try:
        found = np.broadcast_to(np.False_, tuple(map(len, box)))[tuple(inner)].shape
    except IndexError as error:
        expected = "arrays that broadcast together"
        raise TensorError(where, f"the index {key!r}", expected, "give one shape") from error
    return Selection(tuple(box), tuple(inner), found)


def _full_key(where: str, key: Any, rank: int) -> Iterator[Any]:
    """An entry for each axis, and Nones in between."""
    entries: list[Any] = []
    for entry in key if isinstance(key, tuple) else (key,):
        entries.extend(_unmasked(where, entry))
    num_axes = sum(entry is not None and entry is not Ellipsis for entry in entries)
    num_ellipses = sum(entry is Ellipsis for entry in entries)
    if num_axes > rank or num_ellipses > 1:
        found = f"an index of {num_axes} axes and {num_ellipses} ellipses"
        expected = f"at most {rank} and one"
        raise TensorError(where, found, expected, "leave some out")
    rest = [slice(None)] * (rank - num_axes)
    if not num_ellipses:
        entries.append(Ellipsis)
    for entry in entries:
        if entry is Ellipsis:
            yield from rest
        else:
            yield entry


def _unmasked(where: str, entry: Any) -> list[Any]:
    """A mask stands for the indices where it is true, an array for each of its axes."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return [entry]
    array = np.asarray(entry)
    if array.dtype == np.bool_:
        if array.ndim == 0:
            fix = "write t[...] or an index of integers"
            raise TensorError(where, f"the index {entry!r}", "integers, slices or masks", fix)
        axes = zip(array.nonzero(), array.shape, strict=True)
        return [_Masked(places, size) for places, size in axes]
    return [array]


@dataclass(frozen=True, slots=True, eq=False)
class _Masked:
    """One axis of a mask."""

    places: Array
    size: int


def _resolve_entry(where: str, entry: Any, size: int) -> tuple[range, Any]:
    """The extent of an axis that an entry touches, and the entry inside it."""
    match entry:
        case slice():
            return _resolve_slice(where, entry, size)
        case _Masked():
            if entry.size != size:
                found = f"a mask of {entry.size}"
                raise TensorError(where, found, f"one of {size}", "give it the tensor's shape")
            return _resolve_array(where, entry.places, size)
        case _:
            return _resolve_array(where, entry, size)


def _resolve_slice(where: str, entry: slice, size: int) -> tuple[range, slice]:
    try:
        touched = range(size)[entry]
    except (TypeError, ValueError) as error:
        expected = "integers, and a step that is not 0"
        raise TensorError(where, repr(entry), expected, "correct the slice") from error
    if not touched:
        return range(0), slice(0, 0)
    low, high = min(touched[0], touched[-1]), max(touched[0], touched[-1])
    stop = touched[-1] - low + (1 if touched.step > 0 else -1)
    return range(low, high + 1), slice(touched[0] - low, stop if stop >= 0 else None, touched.step)


def _resolve_array(where: str, entry: Array, size: int) -> tuple[range, Any]:
    if entry.size == 0 and entry.dtype == np.float64:  # what an empty list becomes
        entry = entry.astype(np.intp)
    if entry.dtype.kind not in "iu":
        found = f"an index of {entry.dtype}"
        raise TensorError(where, found, "integers, slices or masks", "convert it first")
    if not entry.size:
        return range(0), entry.astype(np.intp)
    lowest, highest = int(entry.min()), int(entry.max())
    if lowest < -size or highest >= size:
        found = f"index {lowest if lowest < -size else highest}"
        expected = f"one from {-size} to {size - 1}" if size else "none, since the axis is empty"
        raise TensorError(where, found, expected, "correct the index")
    places = np.where(entry < 0, entry.astype(np.intp) + size, entry.astype(np.intp))
    low = int(places.min())
    inside = places - low
    return range(low, int(places.max()) + 1), operator.index(inside) if not inside.ndim else inside


def native_array(where: str, value: Any) -> tuple[Array, DType]:
    """An array of a dtype that kernels have, in the byte order of this machine."""
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array, dtype_of(array.dtype, where)


def convert_elements(array: Array, source: DType, target: DType) -> Array:
    """As a kernel casts them: rounded once."""
    if not array.size:
        return array.astype(target.storage)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest is defined there
        return np.asarray(to_storage(source, target)(array))


def resolve_elements(where: str, value: Any, target: DType) -> Array:
    """A number, a list or an array as elements of a dtype.

    Arrays are converted; numbers of Python must be what the dtype can hold if it is of integers.
    """
    array, source = native_array(where, value)
    elements = convert_elements(array, source, target)
    is_python = not isinstance(value, np.ndarray | np.generic)
    if is_python and target.is_int() and not target.is_bool():
        lossy = elements.astype(target.compute).astype(source.storage) != array
        if lossy.any():
            found = f"{array[lossy].reshape(-1)[0].item()!r}"
            low, high = target.get_int_min_value(), target.get_int_max_value()
            expected = f"a whole number from {low} to {high}"
            raise TensorError(where, found, expected, "round it, or use another dtype")
    return elements
