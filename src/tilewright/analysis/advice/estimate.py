"""Estimates of the time that a change of the machine saves. They only order advice."""

from dataclasses import dataclass

from tilewright.analysis.advice.bound import MEMORY_PACE, mean_ps
from tilewright.records import RunParts, RunRecord
from tilewright.records.run.part import PathTimes

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

    @property
    def parts(self) -> RunParts:
        return self.record.breakdown_ps

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
        return max(0, round(self.times.refresh_ps + mean_ps(self.record) - self.record.latency_ps))

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
        """Time that accesses of the path wait for others in memories."""
        return max(0, self.times.work_ps.get(MEMORY_PACE, 0) - self._idle_memory_ps)

    @property
    def crowding_ps(self) -> int:
        """Time that accesses would wait less for others, were they spread over all channels."""
        channels = self.record.channels
        if channels is None:
            return 0
        return int(self.memory_queue_ps * (1 - self.channels_in_use / len(channels.shares)))

    @property
    def _idle_memory_ps(self) -> int:
        """Time of the path's accesses in memories that are idle but for them."""
        fields = self.record.machine.fields
        clocks = sum(int(fields.get(name) or 0) for name in _IDLE_CLOCKS)
        return clocks * int(fields.get(MEMORY_PACE) or 0) * self.times.num_accesses

    @property
    def window_ps(self) -> int:
        """Time saved if twice as many bytes are under way: that of the latency they hide."""
        waiting_ps = self.memory_queue_ps + self.times.refresh_ps + self.parts.link_queueing
        return min(max(0, self.times.window_ps - waiting_ps) // 2, self._idle_moving_ps())
