"""Values beside their reference in float64: one figure and the tolerance that it has to keep."""

from typing import Any

import numpy as np

from tilewright.errors import BenchError

Array = np.ndarray[Any, Any]

_TOLERANCES = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5}  # relative to the norm of a row


def tolerance_of(dtype: str) -> float:
    """For results that were computed in f32 and rounded to ``dtype`` once."""
    if dtype not in _TOLERANCES:
        raise BenchError("values", dtype, f"one of {', '.join(_TOLERANCES)}", "take another dtype")
    return _TOLERANCES[dtype]


def row_error(found: Array, expected: Array) -> float:
    """The greatest error of an element, relative to the norm of its row (the last axis).

    A row of zeros counts with its absolute error. A value that is no number is infinitely wrong.

    >>> row_error(np.array([[3.0, 4.5]]), np.array([[3.0, 4.0]]))
    0.1
    """
    if found.shape != expected.shape:
        shapes = f"values of shape {found.shape}"
        raise BenchError("values", shapes, f"the reference's {expected.shape}", "correct one")
    wide = np.asarray(expected, np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    errors = np.abs(np.asarray(found, np.float64) - wide) / np.where(norms > 0, norms, 1.0)
    return float(np.max(np.nan_to_num(errors, nan=np.inf), initial=0.0))
