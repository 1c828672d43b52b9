"""Repeats a run at several phases of its memory's refresh (ADR 0029)."""

from collections.abc import Callable, Sequence
from math import gcd, sqrt

from tilewright.errors import UsageError
from tilewright.machine.build import refresh_of
from tilewright.machine.spec import MachineSpec
from tilewright.records.phases import NARROW_FRACTION, PhaseReason, PhaseSpread

AUTO_COUNTS = ((2, 4, 8, 16), (3, 9, 16), (5, 11, 16), (7, 13, 16))
"""Numbers of phases to try, one list for each kind of machine: see ``auto_counts``."""

LONG_INTERVALS = 20  # a longer run meets refresh so often that its phase no longer matters
T_975 = (  # quantile 0.975 of Student's t by degrees of freedom, from 1 on
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739,
    2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423, 2.0395,
)  # fmt: skip
MAX_PHASES = len(T_975) + 1


def auto_counts(slices: int) -> tuple[int, ...]:
    """Return the numbers of phases to try, for cubes of so many slices of memory.

    Slices refresh in turn. Phases as far apart as two such turns are alike for a run on all slices,
    and would agree by construction; so all numbers but the last have no factor in common with
    ``slices``.

    >>> auto_counts(1), auto_counts(8), auto_counts(6)
    ((2, 4, 8, 16), (3, 9, 16), (5, 11, 16))
    """
    for counts in AUTO_COUNTS:
        if all(gcd(count, slices) == 1 for count in counts[:-1]):
            return counts
    return AUTO_COUNTS[0]


def half_width_ps(latencies_ps: Sequence[int]) -> float | None:
    """Return t(0.975, N-1) s / sqrt(N) of N latencies; None of a single one.

    Sums are exact, so that one square root is all that rounds.
    """
    count, total_ps = len(latencies_ps), sum(latencies_ps)
    if count == 1:
        return None
    squares = sum((count * each - total_ps) ** 2 for each in latencies_ps)
    return T_975[count - 2] * sqrt(squares / (count**3 * (count - 1)))


def spread_of(
    latencies_ps: Sequence[int],
    *,
    interval_ps: int,
    refresh_ps: int,
    slices: int,
    reason: PhaseReason,
) -> PhaseSpread:
    """Return mean, half-width and extremes of latencies in the order of their phases."""
    return PhaseSpread(
        count=len(latencies_ps),
        reason=reason,
        interval_ps=interval_ps,
        refresh_ps=refresh_ps,
        slices=slices,
        mean_ps=sum(latencies_ps) / len(latencies_ps),
        half_width_ps=half_width_ps(latencies_ps),
        min_ps=min(latencies_ps),
        max_ps=max(latencies_ps),
        latencies_ps=tuple(latencies_ps),
    )


def sample_phases(
    spec: MachineSpec, count: int | None, first_ps: int, latency_of: Callable[[int], int]
) -> PhaseSpread | None:
    """Return the spread of a latency over ``count`` phases; None: by the rule of ADR 0029.

    ``first_ps`` is the latency at the machine's own phase. ``latency_of(shift_ps)`` runs again
    with all refreshes ``shift_ps`` later. Returns None if nothing in the machine refreshes.
    """
    if count is not None and not 1 <= count <= MAX_PHASES:
        fix = "choose another number"
        raise UsageError("phases", str(count), f"1 to {MAX_PHASES}", fix)
    refresh = refresh_of(spec)
    if refresh is None:
        return None
    refresh_ps = refresh.all_bank_ps if refresh.kind == "all_bank" else refresh.per_bank_ps
    found = {0: first_ps}

    def spread(number: int, reason: PhaseReason) -> PhaseSpread:
        shifts_ps = [index * refresh.interval_ps // number for index in range(number)]
        for shift_ps in shifts_ps:
            if shift_ps not in found:
                found[shift_ps] = latency_of(shift_ps)
        return spread_of(
            [found[shift_ps] for shift_ps in shifts_ps],
            interval_ps=refresh.interval_ps,
            refresh_ps=refresh_ps,
            slices=spec.cube.pes,
            reason=reason,
        )

    if count is not None:
        return spread(count, "asked")
    if first_ps > LONG_INTERVALS * refresh.interval_ps:
        return spread(1, "long")
    counts = auto_counts(spec.cube.pes)
    for number in counts:
        sampled = spread(number, "narrow")
        if _is_enough(sampled):
            return sampled
    return spread(counts[-1], "limit")


def _is_enough(spread: PhaseSpread) -> bool:
    """Return whether the half-width is narrow, and no refresh was stepped over."""
    width_ps = spread.half_width_ps or 0.0
    is_narrow = width_ps < NARROW_FRACTION * spread.mean_ps or not spread.max_ps
    return is_narrow and not spread.may_miss_refresh
