"""Whole numbers that programs give: Python's, and NumPy's as Python's."""

from numbers import Integral


def whole_number(value: object) -> int | None:
    """Return a whole number as Python's int; None for what is none, truth values included.

    >>> import numpy as np
    >>> whole_number(np.int64(8)), whole_number(8.0), whole_number(True)
    (8, None, None)
    """
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    return int(value) if is_number else None  # type: ignore[call-overload]
