"""Element types by the texts of KernBench: ``"f16"`` and the like."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewright.errors import TensorError, UnitError
from tilewright.interop.kernbench.error import ValueProgramError
from tilewright.language import dtype as ours
from tilewright.language.dtype import DType

DTYPES: Mapping[str, DType] = MappingProxyType(
    {
        dtype.device_name: dtype
        for dtype in (
            ours.float16, ours.bfloat16, ours.float32, ours.float64,
            ours.int8, ours.int16, ours.int32, ours.int64,
            ours.uint8, ours.uint16, ours.uint32, ours.uint64,
        )
    }
)  # fmt: skip
_HOST = ("f16", "f32", "i8", "i16", "i32", "u8", "u16", "u32")  # that from_numpy takes
_UNSIGNED = {1: ours.uint8, 2: ours.uint16, 4: ours.uint32, 8: ours.uint64}


def dtype_of_text(text: object, where: str = "dtype") -> DType:
    """Return the dtype that a text names; our own names and dtypes are refused.

    >>> dtype_of_text("bf16")
    tl.bfloat16
    """
    found = DTYPES.get(text) if isinstance(text, str) else None
    if found is None:
        fix = "write it as a text, like 'f16'"
        raise TensorError(where, f"the dtype {text!r}", f"one of {', '.join(DTYPES)}", fix)
    return found


def dtype_itemsize(dtype: str) -> int:
    """Return the bytes of an element.

    >>> dtype_itemsize("f16")
    2
    """
    return dtype_of_text(dtype).bits // 8


def dtype_of_size(itemsize: int) -> DType:
    """Return an unsigned dtype whose elements have so many bytes."""
    if itemsize not in _UNSIGNED:
        fix = "pass dtype_itemsize(dtype)"
        raise UnitError("itemsize", repr(itemsize), "1, 2, 4 or 8 bytes", fix)
    return _UNSIGNED[itemsize]


def dtype_of_array(array: np.ndarray[Any, Any]) -> str:
    """Return the text of an array's dtype, of those that ``from_numpy`` takes."""
    for text in _HOST:
        if array.dtype == DTYPES[text].storage:
            return text
    fix = "convert it: array.astype(numpy.float16)"
    found = f"an array of {array.dtype}"
    raise ValueProgramError("from_numpy", found, f"one of {', '.join(_HOST)}", fix)
