"""What quality is drawn over: bytes of a step, or its time on one machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.records.attention_compare import QualityRow
from tilewright.units import PS_PER_US

__all__ = ("Axis", "bytes_axis", "latency_axis")


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


def latency_axis(rows: Sequence[QualityRow]) -> Axis:
    """Of the rows of one machine; those without a time do not stretch it."""
    dense_ps = rows[0].dense_latency_ps
    times = [row.latency_ps for row in rows if row.latency_ps is not None]
    most_ps = max((*times, dense_ps or 0), default=0) or PS_PER_US
    return Axis(
        title="time of one layer's attention for one token, in us",
        unit="us",
        cost=lambda row: (row.latency_ps or 0) / PS_PER_US,
        label=lambda value: f"{value:.3g}",
        most=1.05 * most_ps / PS_PER_US,
        dense=None if dense_ps is None else dense_ps / PS_PER_US,
    )
