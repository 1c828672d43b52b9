"""Latencies over refresh phases for people."""

from tilewright.records.phases import PhaseSpread
from tilewright.units import format_ps

UNKNOWN = "±?"  # there are too few phases for their half-width to mean anything


def width_text(phases: PhaseSpread | None) -> str:
    """Return the half-width as a share of the mean; empty if there is none.

    >>> width_text(None)
    ''
    """
    fraction = None if phases is None else phases.relative_half_width
    if phases is None or fraction is None:
        return ""
    return UNKNOWN if phases.may_miss_refresh else f"±{100 * fraction:.1f}%"


def ends_text(phases: PhaseSpread | None) -> str:
    """Return the smallest and the largest latency; empty of one phase.

    >>> ends_text(None)
    ''
    """
    if phases is None or phases.count == 1:
        return ""
    return f"{format_ps(phases.min_ps)} to {format_ps(phases.max_ps)}"


def latency_text(latency_ps: int, phases: PhaseSpread | None) -> str:
    """Return the mean with its half-width, smallest and largest."""
    text = format_ps(latency_ps if phases is None else round(phases.mean_ps))
    if phases is None or phases.reason == "long":
        return text
    if phases.count == 1:
        return f"{text} (at one refresh phase; --phases has the spread)"
    told = f"mean of {phases.count} refresh phases, {ends_text(phases)}"
    if phases.may_miss_refresh:
        told += "; too few to know how well"
    return f"{text} {width_text(phases)} ({told})"
