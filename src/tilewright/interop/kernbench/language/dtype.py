"""Dtypes that a kernel names, by the texts of KernBench."""

from typing import Any

from tilewright.errors import KernelTypeError
from tilewright.interop.kernbench.dtype import DTYPES
from tilewright.language.dtype import DType, dtype_of
from tilewright.language.executor import current_program


def parse_dtype(text: Any) -> DType:
    """Return the dtype of a text such as "f16"; refuse another spelling, and name the right one."""
    if isinstance(text, str) and text in DTYPES:
        return DTYPES[text]
    try:
        fix = f'did you mean "{dtype_of(text).device_name}"?'
    except KernelTypeError:
        fix = "name one of them"
    raise current_program().error(f"the dtype {text!r}", "one of " + ", ".join(DTYPES), fix)
