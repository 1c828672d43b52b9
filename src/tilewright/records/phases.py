"""Latencies of one run at several phases of its memory's refresh."""

from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from tilewright.records.document import Document

NARROW_FRACTION = 0.02  # of the mean: how well a latency is known that needs no more phases

PhaseReason = Literal["asked", "long", "narrow", "limit"]
"""Why there are so many phases: the user said so, the run is longer than 20 intervals, the
half-width is small enough, or there are no more."""


class PhaseSpread(Document):
    """Mean and spread of a latency over refresh phases, spread evenly over one interval.

    Latency ``i`` is that of the machine with its refreshes ``i * interval_ps // count`` later.
    """

    count: PositiveInt
    reason: PhaseReason
    interval_ps: PositiveInt
    refresh_ps: NonNegativeInt | None = None  # how long one lasts; None: an older record
    slices: PositiveInt | None = None  # of a cube; they refresh in turn, evenly over an interval
    mean_ps: NonNegativeFloat
    half_width_ps: NonNegativeFloat | None  # of the mean, confidence 95 %; None: one phase
    min_ps: NonNegativeInt
    max_ps: NonNegativeInt
    latencies_ps: tuple[NonNegativeInt, ...]

    @model_validator(mode="after")
    def _check_latencies(self) -> Self:
        found = self.latencies_ps
        if len(found) != self.count:
            raise ValueError(f"{len(found)} latencies_ps of {self.count} phases")
        if (self.min_ps, self.max_ps) != (min(found), max(found)):
            raise ValueError("min_ps and max_ps are not those of latencies_ps")
        if self.mean_ps != sum(found) / self.count:
            raise ValueError("mean_ps is not the mean of latencies_ps")
        if (self.half_width_ps is None) != (self.count == 1):
            raise ValueError("half_width_ps is there if, and only if, there are several phases")
        return self

    @property
    def relative_half_width(self) -> float | None:
        """Half-width over mean; None: one phase, or no time passed."""
        if self.half_width_ps is None or not self.mean_ps:
            return None
        return self.half_width_ps / self.mean_ps

    @property
    def unseen_ps(self) -> float:
        """By how much the mean may be wrong although these phases agree.

        Phases further apart than a refresh lasts may all miss one that the run meets at phases
        between two of them: at one part in ``count`` of all, for as long as a refresh lasts. Phases
        as far apart as the refreshes of two slices, or a multiple of that, are alike for a run that
        uses all slices: what happens in between is never seen.
        """
        if self.refresh_ps is None or self.slices is None:
            return 0.0
        if self.slices > 1 and self.slices % self.count == 0:
            return float(min(self.refresh_ps, self.interval_ps // self.slices))
        is_coarse = -(-self.interval_ps // self.count) > self.refresh_ps
        return self.refresh_ps / self.count if is_coarse else 0.0

    @property
    def may_miss_refresh(self) -> bool:
        """Whether there are too few phases for their half-width to say how well a mean is known."""
        if self.half_width_ps is None or self.unseen_ps <= self.half_width_ps:
            return False
        return self.unseen_ps >= NARROW_FRACTION * self.mean_ps


class Timed(Document):
    """A latency, with its mean and spread where it was taken at several refresh phases."""

    latency_ps: NonNegativeInt
    phases: PhaseSpread | None = None
    """Latency over refresh phases, of which its own is the first. None: nothing refreshes, an older
    record, or a run that was interrupted."""

    @model_validator(mode="after")
    def _check_phases(self) -> Self:
        if self.phases is not None and self.phases.latencies_ps[0] != self.latency_ps:
            raise ValueError("latency_ps is not that of the first of the phases")
        return self

    @property
    def mean_ps(self) -> float:
        """Latency that stands for the run: the mean over refresh phases, if there are any."""
        return self.latency_ps if self.phases is None else self.phases.mean_ps

    @property
    def figure_ps(self) -> int:
        """Mean latency in whole picoseconds."""
        return round(self.mean_ps)
