"""Listeners that write a timeline, or say how far a run has come."""

from collections.abc import Callable
from time import monotonic

from tilewright.analysis.listener import LOOKS_PER_DRAIN, SubmittedLaunch
from tilewright.device.build import Device
from tilewright.report.perfetto.recorder import TraceRecorder
from tilewright.runtime.request import LaunchReport
from tilewright.units import format_ps

SECONDS_PER_TEXT = 0.2


class TraceListener:
    """Lets a recorder write down what happened, every now and then."""

    def __init__(self, recorder: TraceRecorder) -> None:
        self._recorder = recorder
        self._num_looks = 0

    def launch_submitted(self, launch: SubmittedLaunch) -> None:
        self._recorder.launch_submitted(*launch)

    def launch_completed(self, report: LaunchReport) -> None:
        self._recorder.launch_completed(report)

    def device_built(self, device: Device) -> None:
        self._recorder.device_built(device)

    def look(self) -> None:
        self._num_looks += 1
        if self._num_looks % LOOKS_PER_DRAIN == 0:
            self._recorder.drain()


class ProgressListener:
    """Tells how far a run has come, a few times a second of wall time."""

    def __init__(self, device: Device, tell: Callable[[str], None], what: str) -> None:
        self._engine = device.engine
        self._tell = tell
        self._what = what
        self._launch = ""
        self._told_at, self._told_events = monotonic(), 0

    def launch_submitted(self, launch: SubmittedLaunch) -> None:
        self._launch = f", {launch.name} on {len(set(launch.owners.values()))} PEs"

    def launch_completed(self, report: LaunchReport) -> None:
        """The next submission tells more."""

    def device_built(self, device: Device) -> None:
        self._engine, self._told_events = device.engine, 0

    def look(self) -> None:
        now = monotonic()
        if now - self._told_at < SECONDS_PER_TEXT:
            return
        events = self._engine.core.events
        rate = (events - self._told_events) / (now - self._told_at)
        self._told_at, self._told_events = now, events
        time = format_ps(self._engine.now_ps)
        self._tell(f"{self._what}: {time} simulated, {rate:,.0f} events/s{self._launch}")
