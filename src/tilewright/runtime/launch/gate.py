"""When the PEs of a launch may begin, and how the host learns that they have ended."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.device.command import Delivery
from tilewright.engine import TaskGraph
from tilewright.executor.stream import Stream
from tilewright.machine.coords import PeCoord
from tilewright.runtime.running_device import RunningDevice


@dataclass(slots=True)
class LaunchGate:
    """Each PE begins when it has its command; with a common start, when the last of them has.

    No PE begins before ``earliest_start_ps``.
    """

    running: RunningDevice
    delivery: Delivery
    arrivals: Mapping[PeCoord, int]  # the tasks by which PEs have their command
    common_start: tuple[int, int] | None = None  # a signal, and the value at which all have it
    earliest_start_ps: int = 0
    starts_ps: dict[PeCoord, int] = field(default_factory=dict)
    ends: dict[PeCoord, tuple[int, int]] = field(default_factory=dict)
    """By PE: when it ended, and the owner of what ended last."""
    _num_streams: Counter[PeCoord] = field(default_factory=Counter)

    def expect(self, pe: PeCoord) -> None:
        """One more stream of a PE."""
        self._num_streams[pe] += 1

    def begin(self, stream: Stream) -> None:
        pe, hub = stream.pe.coord, self.running.hub
        hub.wait(self.arrivals[pe], f"the command to {stream.pe.name}")
        if self.common_start is not None:
            hub.wait_signal(*self.common_start)
        if hub.now_ps < self.earliest_start_ps:
            hub.sleep(self.earliest_start_ps - hub.now_ps)
        self.starts_ps.setdefault(pe, hub.now_ps)

    def end(self, stream: Stream) -> None:
        """Wait for the last command of a stream; the last stream of a PE answers."""
        pe, hub = stream.pe.coord, self.running.hub
        stream.wait_for_all()
        self.ends[pe] = hub.now_ps, hub.running.number
        self._num_streams[pe] -= 1
        if self._num_streams[pe]:
            return
        graph = TaskGraph()
        self.running.path.answer(graph, pe, self.delivery.answers[pe], ())
        hub.submit(graph)
