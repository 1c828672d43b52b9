"""Means with the interval in which they lie with 95 % confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NORMAL_QUANTILE = 1.959963984540054  # 97.5 % of a normal distribution are below


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of samples; ``interval`` is None with fewer than two of them."""

    value: float
    interval: tuple[float, float] | None

    @property
    def has_zero(self) -> bool:
        """Whether the mean may well be 0; nobody knows from one sample."""
        return self.interval is None or self.interval[0] <= 0.0 <= self.interval[1]


def mean_of(samples: Sequence[float]) -> Mean:
    """By Student's t. Samples count as independent of each other.

    >>> low, high = mean_of([1.0, 2.0, 3.0]).interval
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    values = np.asarray(samples, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Mean(mean, None)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = student_quantile(len(values) - 1) * error
    return Mean(mean, (mean - half, mean + half))


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Mean:
    """Of samples that belong together: what both have in common does not widen the interval."""
    return mean_of([one - other for one, other in zip(first, second, strict=True)])


def share_interval(hits: int, cases: int) -> tuple[float, float]:
    """Wilson's interval of a share: it stays between 0 and 1, and has width even at the ends."""
    share, z = hits / cases, NORMAL_QUANTILE
    scale = 1 + z * z / cases
    centre = (share + z * z / (2 * cases)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / cases + z * z / (4 * cases * cases))
    return max(0.0, centre - half), min(1.0, centre + half)


def student_quantile(degrees: int) -> float:
    """97.5 % of Student's distribution are below: exact for 1 and 2, else within 1 %.

    From 3 degrees on by the expansion of Cornish and Fisher.
    """
    if degrees == 1:
        return math.tan(math.pi * 0.475)
    if degrees == 2:
        return 0.95 * math.sqrt(2 / (1 - 0.95**2))
    z, n = NORMAL_QUANTILE, degrees
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
