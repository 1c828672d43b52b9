"""Values of the host as elements of a tensor: the dtypes of kernels, converted as kernels do."""

from typing import Any

import numpy as np

from tilewright.errors import TensorError
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.meaning.convert import to_storage

Array = np.ndarray[Any, Any]


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
