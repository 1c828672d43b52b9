"""Which results nobody beats: more quality for as much, or as much quality for less."""

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[bool, ...]:
    """For each (cost, quality): whether no other point is at least as good in both, and not equal.

    >>> pareto_front([(1, 0.5), (2, 0.9), (2, 0.7), (3, 0.9)])
    (True, True, False, False)
    """
    return tuple(not any(_beats(other, point) for other in points) for point in points)


def _beats(other: tuple[float, float], point: tuple[float, float]) -> bool:
    return other[0] <= point[0] and other[1] >= point[1] and other != point
