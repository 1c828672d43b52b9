"""Rates in GB/s, exactly, from bytes and picoseconds."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tilewright.units import PS_PER_NS

Times = npt.NDArray[np.int64]


def gb_per_s(num_bytes: int, time_ps: int) -> Fraction:
    """The rate of so many bytes in a time; a byte per nanosecond is one GB/s.

    >>> print(gb_per_s(64, 250))
    256
    """
    return Fraction(num_bytes * PS_PER_NS, time_ps)


def rate_inside(done_ps: Times, num_bytes: int, first_ps: int, last_ps: int) -> Fraction:
    """The rate of equal accesses that were done after ``first_ps`` and until ``last_ps``."""
    inside = int(((done_ps > first_ps) & (done_ps <= last_ps)).sum())
    return gb_per_s(inside * num_bytes, last_ps - first_ps)
