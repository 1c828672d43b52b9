"""What quality is drawn over: bytes of a step, or its time on one machine."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.records.attention_compare import QualityRow
from tilewright.units import PS_PER_US

__all__ = ("TICKS", "Axis", "bytes_axis", "latency_axis", "round_top")

TICKS = 5  # parts of an axis


@dataclass(frozen=True, slots=True)
class Axis:
    """A cost from 0 to ``most``; ``dense`` is that of dense attention, if it is to be drawn."""

    title: str
    unit: str
    cost: Callable[[QualityRow], float]
    label: Callable[[float], str]
    most: float
    dense: float | None


def bytes_axis(rows: Sequence[QualityRow]) -> Axis:
    """As a share of what dense attention reads."""

    def cost(row: QualityRow) -> float:
        return row.bytes / row.dense_bytes

    return Axis(
        title="bytes of a step, of what dense attention reads",
        unit="of its bytes",
        cost=cost,
        label=lambda value: f"{value:.2f}",
        most=max(1.0, *map(cost, rows)),
        dense=None,
    )


def latency_axis(rows: Sequence[QualityRow], dense_ps: int | None) -> Axis:
    """Of all machines' rows, so that panels have one scale; ``dense_ps`` is of one machine."""
    times = [time_ps for row in rows for time_ps in (row.latency_ps, row.dense_latency_ps)]
    most_ps = max((time_ps for time_ps in times if time_ps is not None), default=PS_PER_US)
    return Axis(
        title="time of one layer's attention for one token, in us",
        unit="us",
        cost=lambda row: (row.latency_ps or 0) / PS_PER_US,
        label=lambda value: f"{value:.4g}",
        most=round_top(most_ps / PS_PER_US),
        dense=None if dense_ps is None else dense_ps / PS_PER_US,
    )


def round_top(most: float, ticks: int = TICKS) -> float:
    """Where an axis may end that goes so far: its ticks are then at round numbers.

    >>> round_top(12.6), round_top(0.8), round_top(40.0)
    (15.0, 1.0, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(most / ticks))
    steps = (power * factor for factor in (1, 2, 3, 4, 5, 10, 20))
    return next(ticks * step for step in steps if ticks * step > most)
