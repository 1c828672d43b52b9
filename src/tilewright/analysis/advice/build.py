"""Changes of the machine that would make a run faster, each with a bound on what it gains.

The bound is that of `advice_bound`. The worth is an estimate from the critical path and only orders
the list. ADR 0031 has the argument.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.analysis.advice.bound import MEMORY_PACE, shortest_ps
from tilewright.analysis.advice.change import (
    INTERLEAVE,
    PCIE_GENERATION,
    REFRESH,
    WINDOW,
    change_of,
)
from tilewright.machine.field import HOST_LINK
from tilewright.records import RunRecord
from tilewright.records.explain import Advice
from tilewright.records.run.part import PathTimes
from tilewright.units import format_ps, share_text

MAX_ADVICE = 8
LEAST_WORTH = 0.005  # of the latency


class _Idea(NamedTuple):
    """A field to change, the time that this saves by estimate, and why."""

    field: str
    worth_ps: int
    reason: str


def advise(record: RunRecord) -> tuple[Advice, ...]:
    """Return the changes that are worth most, the best first.

    None if the critical path was not traced, or if ``--set`` does not reach the machine.
    """
    if record.path is None or not record.latency_ps or record.machine.is_own:
        return ()
    found = [advice for idea in _ideas(record) if (advice := _advice(record, idea)) is not None]
    found = [advice for advice in found if advice.worth >= LEAST_WORTH]
    return tuple(sorted(found, key=lambda advice: (-advice.worth, advice.field))[:MAX_ADVICE])


def _advice(record: RunRecord, idea: _Idea) -> Advice | None:
    change = change_of(idea.field, record.machine.fields)
    if change is None:
        return None
    total_ps, least_ps = record.mean_ps, shortest_ps(record, change)
    bound = max(0.0, 1 - least_ps / total_ps)
    worth = min(bound, idea.worth_ps / total_ps)
    return Advice.of(change, idea, least_ps=least_ps, bound=bound, worth=worth)


def _ideas(record: RunRecord) -> Iterator[_Idea]:
    estimate, total_ps = Estimate(record), record.mean_ps
    for field in dict.fromkeys((*estimate.times.work_ps, *estimate.times.queue_ps)):
        name = PCIE_GENERATION if field == HOST_LINK else field
        reason = f"it sets {_part(estimate.set_ps(field), total_ps)} of the critical path"
        queue_ps = estimate.times.queue_ps.get(field, 0)
        if queue_ps:
            reason += f", {format_ps(queue_ps)} of it waiting in front of links"
        yield _Idea(name, estimate.faster_ps(field), reason)
    refresh_ps = estimate.refresh_ps
    reason = f"refresh delays the critical path by {_part(refresh_ps, total_ps)} on average"
    yield _Idea(REFRESH, refresh_ps // 2, reason)
    if record.channels is not None:
        reason = (
            f"accesses wait {_part(estimate.memory_queue_ps, total_ps)} for others in memories, "
            f"while on average {estimate.channels_in_use:.1f} of {len(record.channels.shares)} "
            "pseudo-channels of a slice move data"
        )
        yield _Idea(INTERLEAVE, estimate.crowding_ps, reason)
    window_ps = estimate.window_ps
    reason = f"more bytes under way would hide {_part(window_ps, total_ps)} of latency"
    yield _Idea(WINDOW, window_ps, reason)


def _part(time_ps: int, total_ps: float) -> str:
    return f"{format_ps(time_ps)} ({share_text(min(1.0, time_ps / total_ps))})"


_MOVING = ("bytes_per_us", MEMORY_PACE)  # rates of what moves bytes
_IDLE_CLOCKS = (
    "cube.hbm.timing.rcd_read_clocks",
    "cube.hbm.timing.cl_clocks",
    "cube.hbm.timing.bl_clocks",
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What changes are worth, from the critical path of a record."""

    record: RunRecord

    @property
    def times(self) -> PathTimes:
        return self.record.path or PathTimes()

    def set_ps(self, field: str) -> int:
        """Return the time of the path that a field sets, waiting for what it sets included."""
        return self.times.work_ps.get(field, 0) + self.times.queue_ps.get(field, 0)

    def faster_ps(self, field: str) -> int:
        """Return the time saved if all that a field sets takes half as long.

        Bytes go through memories and links one behind the other: a faster one of them only helps
        until the next slowest sets the pace.
        """
        half_ps = self.set_ps(field) // 2
        if not field.endswith(_MOVING):
            return half_ps
        return min(half_ps, self._idle_moving_ps(besides=field))

    def _idle_moving_ps(self, besides: str = "") -> int:
        """Return the time of the path in memories and on links that the busiest stands still."""
        times = self.times
        moving_ps = sum(
            time_ps
            for each in (times.work_ps, times.queue_ps)
            for field, time_ps in each.items()
            if field.endswith(_MOVING)
        )
        busy_ps = [
            row.busy_ps
            for row in self.record.resources
            if row.field.endswith(_MOVING) and row.field != besides
        ]
        return max(0, moving_ps - max(busy_ps, default=0))

    @property
    def refresh_ps(self) -> int:
        """Time that refresh holds the path up, in the mean over phases.

        Phases differ by refresh alone, so what the mean has more than the path's own phase is it.
        """
        return max(0, round(self.times.refresh_ps + self.record.mean_ps - self.record.latency_ps))

    @property
    def channels_in_use(self) -> float:
        """Pseudo-channels of the busiest slice that move data while the path is in memories."""
        channels, memory_ps = self.record.channels, self.times.work_ps.get(MEMORY_PACE, 0)
        if channels is None or not memory_ps:
            return 0.0
        used_ps = sum(channels.shares) * self.record.latency_ps
        return min(float(len(channels.shares)), used_ps / memory_ps)

    @property
    def memory_queue_ps(self) -> int:
        """Time that accesses of the path wait for others in memories: beyond that in idle ones."""
        fields, times = self.record.machine.fields, self.times
        clocks = sum(int(fields.get(name) or 0) for name in _IDLE_CLOCKS)
        idle_ps = clocks * int(fields.get(MEMORY_PACE) or 0) * times.num_accesses
        return max(0, times.work_ps.get(MEMORY_PACE, 0) - idle_ps)

    @property
    def crowding_ps(self) -> int:
        """Time that accesses would wait less for others, were they spread over all channels."""
        channels = self.record.channels
        if channels is None:
            return 0
        return int(self.memory_queue_ps * (1 - self.channels_in_use / len(channels.shares)))

    @property
    def window_ps(self) -> int:
        """Time saved if twice as many bytes are under way: that of the latency they hide."""
        waiting_ps = self.memory_queue_ps + self.times.refresh_ps
        waiting_ps += self.record.breakdown_ps.link_queueing
        return min(max(0, self.times.window_ps - waiting_ps) // 2, self._idle_moving_ps())
