"""The array library that a session runs on: NumPy or torch, behind the array API."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tilewright.attention.graph import DType
from tilewright.errors import AttentionError, MissingExtraError

Array: TypeAlias = Any  # of the namespace at hand; the array API has no common static type

LARGEST_FP8 = {DType.FLOAT8_E4M3: 448.0, DType.FLOAT8_E5M2: 57344.0}
INTEGER_RANGE = {
    DType.INT32: (-(2**31), 2**31 - 1),
    DType.INT8: (-128, 127),
    DType.INT4: (-8, 7),
}


@dataclass(frozen=True, slots=True)
class Namespace:
    """Functions of the array API, and how element types are stored.

    Values are computed in float32, int32 or bool. Narrow types exist in storage only, and
    ``rounded`` gives the value that a narrow type would hold.
    """

    name: str
    xp: Any
    dtypes: Mapping[DType, Any]

    def array(self, values: object, dtype: DType = DType.FLOAT32) -> Array:
        """Values of the user's, NumPy or of this namespace, in a computed type."""
        wanted = self.dtypes[dtype.computed]
        if isinstance(values, np.ndarray) and values.dtype.kind == "V":  # a type of ml_dtypes
            values = values.astype(np.float32)
        return self.xp.astype(self.xp.asarray(values), wanted, copy=False)

    def stored(self, values: Array, dtype: DType) -> Array:
        """Computed values as they are kept: rounded once."""
        return self.xp.astype(self._clamped(values, dtype), self.dtypes[dtype], copy=False)

    def computed(self, values: Array, dtype: DType) -> Array:
        """Kept values as they are computed with."""
        return self.xp.astype(values, self.dtypes[dtype.computed], copy=False)

    def rounded(self, values: Array, dtype: DType) -> Array:
        return self.computed(self.stored(values, dtype), dtype)

    def full(self, shape: tuple[int, ...], value: float, dtype: DType = DType.FLOAT32) -> Array:
        if value == 0:
            return self.xp.zeros(shape, dtype=self.dtypes[dtype])  # large pools cost no time yet
        return self.xp.full(shape, value, dtype=self.dtypes[dtype])

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """IEEE results without warnings: 1/0 is infinite here, and the flow's own business."""
        if self.name == "numpy":
            return np.errstate(all="ignore")
        return contextlib.nullcontext()

    def _clamped(self, values: Array, dtype: DType) -> Array:
        """Inside what a type holds; floats become whole numbers towards zero, NaN becomes 0."""
        xp = self.xp
        if dtype in LARGEST_FP8:
            limit = LARGEST_FP8[dtype]
            return xp.clip(xp.astype(values, xp.float32, copy=False), -limit, limit)
        if dtype in INTEGER_RANGE and values.dtype != xp.bool:
            wide = xp.astype(values, xp.float64)  # which holds every int32
            wide = xp.where(xp.isnan(wide), xp.zeros_like(wide), xp.trunc(wide))
            return xp.clip(wide, *INTEGER_RANGE[dtype])
        return values


def load_namespace(name: str) -> Namespace:
    """``numpy`` is always there; ``torch`` needs the extra ``bench``."""
    if name == "numpy":
        xp = import_module("array_api_compat.numpy")
        names = {dtype: dtype.array_name for dtype in DType}
        narrow = {dtype: getattr(ml_dtypes, name, name) for dtype, name in names.items()}
        return Namespace(name, xp, {dtype: np.dtype(kind) for dtype, kind in narrow.items()})
    if name != "torch":
        raise AttentionError("namespace", repr(name), "numpy or torch", "choose one of them")
    try:
        xp = import_module("array_api_compat.torch")
    except ModuleNotFoundError as error:
        raise MissingExtraError("namespace torch", str(error.name), "bench") from error
    return Namespace(name, xp, {dtype: getattr(xp, dtype.array_name) for dtype in DType})


def as_float(xp: Any, x: Array) -> Array:
    """Return values in float32."""
    return xp.astype(x, xp.float32, copy=False)


def as_numbers(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Return both as int32 if both are, else both as float32."""
    if x.dtype == xp.int32 and y.dtype == xp.int32:
        return x, y
    return as_float(xp, x), as_float(xp, y)


def tree_sum(xp: Any, x: Array, axis: int) -> Array:
    """Sum over an axis that stays, with size 1: halves are added element by element.

    A library's own sum chooses its order by the shape and by its threads. Element-wise additions
    do not, so a value is the same alone and among others.
    """
    axis %= x.ndim
    count = x.shape[axis]
    if count == 0:
        return empty_sum(xp, x, axis, x.dtype)
    while count > 1:
        half = count // 2
        total = part_of(x, axis, 0, half) + part_of(x, axis, half, 2 * half)
        if count % 2:
            total = xp.concat([total, part_of(x, axis, 2 * half, count)], axis=axis)
        x, count = total, half + count % 2
    return x


def empty_sum(xp: Any, x: Array, axis: int, dtype: Any) -> Array:
    """Return what a reduction over an axis without entries gives: zeros, and the axis stays."""
    return xp.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]), dtype=dtype)


def part_of(x: Array, axis: int, start: int, stop: int) -> Array:
    """Return the entries from ``start`` to ``stop`` of an axis."""
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]
