"""What an oracle is, what it finds, and the rules that say how far that may be off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tilewright.engine import EngineKind
from tilewright.units import PS_PER_NS

Number = int | float | Fraction
Times = npt.NDArray[np.int64]

WIDEST_ERROR = 0.01  # of the expected value: a sample whose standard error is above says nothing
ERRORS = 4  # standard errors that a mean may be off
RAMP = Fraction(1, 100)
MODEL = Fraction(5, 100)


class OracleGroup(Enum):
    """Oracles of one kind, run together by name."""

    QUEUES = "queues"
    NOC = "noc"
    HBM = "hbm"
    MEMORY = "memory"
    LINKS = "links"
    GEMM = "gemm"
    ROOFLINE = "roofline"
    COLLECTIVES = "collectives"
    CONSERVATION = "conservation"
    ADDRESSES = "addresses"
    TRITON = "triton"
    VORTEX = "vortex"
    KERNBENCH = "kernbench"
    PHASES = "phases"
    BOUNDS = "bounds"
    ADVICE = "advice"


class Rule(Enum):
    """Where a tolerance comes from."""

    EXACT = "exact"
    BOUND = "bound"
    CONFIDENCE = "CI4"
    RAMP = "R1"
    BAND = "band"
    MODEL = "model"
    PRINTED = "printed"


@dataclass(frozen=True, slots=True)
class Finding:
    """All four in ``unit`` and exact. Of a bound, the error is what it is broken by."""

    expected: Fraction
    found: Fraction
    error: Fraction
    tolerance: Fraction
    unit: str
    rule: Rule

    @property
    def ok(self) -> bool:
        return self.error <= self.tolerance


Check = Callable[[EngineKind], Finding]
Row = tuple[str, Check] | tuple[str, Check, bool]
"""An oracle in the table of its group: its name, its check, and whether it is slow."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """A law, by the id that it has in our list of laws, and the function that puts it to a test."""

    name: str
    group: OracleGroup
    check: Check
    is_slow: bool = False  # takes minutes, and is run when all are asked for


def exact(expected: Number, found: Number, unit: str) -> Finding:
    """Equal, or wrong.

    >>> exact(505, 506, "ps").ok
    False
    """
    return _within(expected, found, 0, unit, Rule.EXACT)


def at_most(limit: Number, found: Number, unit: str) -> Finding:
    """Never above the limit.

    >>> at_most(Fraction(1, 3), Fraction(1, 4), "flits/cycle").ok
    True
    """
    excess = max(Fraction(0), Fraction(found) - Fraction(limit))
    return Finding(Fraction(limit), Fraction(found), excess, Fraction(0), unit, Rule.BOUND)


def at_least(limit: Number, found: Number, unit: str) -> Finding:
    """Never below the limit."""
    lack = max(Fraction(0), Fraction(limit) - Fraction(found))
    return Finding(Fraction(limit), Fraction(found), lack, Fraction(0), unit, Rule.BOUND)


def ramp(expected: Number, found: Number, unit: str) -> Finding:
    """Within 1 % of a limit that is reached after a start."""
    return _within(expected, found, Fraction(expected) * RAMP, unit, Rule.RAMP)


def near_model(expected: Number, found: Number, unit: str) -> Finding:
    """Within 5 % of what a second implementation has found on the same load."""
    return _within(expected, found, Fraction(expected) * MODEL, unit, Rule.MODEL)


def in_band(low: str, high: str, found: Number, unit: str) -> Finding:
    """Between two stated ends, of which the middle stands for both.

    >>> in_band("0.88", "0.94", 0.95, "busy").ok
    False
    """
    middle = (Fraction(low) + Fraction(high)) / 2
    return _within(middle, found, Fraction(high) - middle, unit, Rule.BAND)


def printed(figure: str, found: Number, unit: str) -> Finding:
    """Equal to a published figure as far as it is printed: to half of its last digit.

    >>> printed("23.93", Fraction(3350, 140), "tokens/s").ok
    True
    """
    _, _, decimals = figure.partition(".")
    half = Fraction(1, 2 * 10 ** len(decimals))
    return _within(Fraction(figure), found, half, unit, Rule.PRINTED)


def confident(expected: float, found: float, unit: str, *, standard_error: float) -> Finding:
    """A random mean within four standard errors.

    An error above 1 % of the expected value counts as 1 %: a small sample widens nothing.
    """
    tolerance = ERRORS * min(standard_error, WIDEST_ERROR * expected)
    return _within(expected, found, tolerance, unit, Rule.CONFIDENCE)


def confident_mean(expected: float, means: Sequence[float], unit: str) -> Finding:
    """The same for the mean of independent runs, whose spread gives the standard error."""
    error = float(np.std(means, ddof=1)) / len(means) ** 0.5
    return confident(expected, float(np.mean(means)), unit, standard_error=error)


def _within(expected: Number, found: Number, tolerance: Number, unit: str, rule: Rule) -> Finding:
    error = abs(Fraction(found) - Fraction(expected))
    return Finding(Fraction(expected), Fraction(found), error, Fraction(tolerance), unit, rule)


def gb_per_s(num_bytes: int, time_ps: int) -> Fraction:
    """Return the rate of so many bytes in a time; one GB/s is a byte a nanosecond.

    >>> print(gb_per_s(64, 250))
    256
    """
    return Fraction(num_bytes * PS_PER_NS, time_ps)


def rate_inside(done_ps: Times, num_bytes: int, first_ps: int, last_ps: int) -> Fraction:
    """Return the rate of equal accesses that were done after ``first_ps`` and until ``last_ps``."""
    inside = int(((done_ps > first_ps) & (done_ps <= last_ps)).sum())
    return gb_per_s(inside * num_bytes, last_ps - first_ps)
