"""Who looks on while a program runs: timelines, critical paths, progress."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol

from tilewright.device.build import Device
from tilewright.machine.coords import PeCoord
from tilewright.report.trace import TraceRecorder
from tilewright.runtime.driver import Driver
from tilewright.runtime.report import LaunchReport
from tilewright.units import format_ps

__all__ = ("Listener", "Listeners", "ProgressListener", "SubmittedLaunch", "TraceListener")

LOOKS_PER_DRAIN = 64
SECONDS_PER_TEXT = 0.2


class SubmittedLaunch(NamedTuple):
    """A launch whose programs have not begun; owners are the engine's numbers of its streams."""

    name: str
    kernel: str
    owners: Mapping[int, PeCoord]


class Listener(Protocol):
    """Changes nothing of what it looks at."""

    def launch_submitted(self, launch: SubmittedLaunch) -> None: ...

    def launch_completed(self, report: LaunchReport) -> None: ...

    def device_built(self, device: Device) -> None:
        """Look at this device from now on: an error in a kernel has ended the one before."""

    def look(self) -> None:
        """Called often while time passes."""


class Listeners:
    """The observer of a driver that tells all listeners."""

    def __init__(self, listeners: Sequence[Listener], commands: Any = None) -> None:
        self.commands = commands
        self._listeners = tuple(listeners)

    def attach(self, driver: Driver) -> None:
        if self._listeners:
            driver.observer = self
            driver.hub.observe = self.look

    def launch_submitted(self, name: str, kernel: str, owners: Mapping[int, PeCoord]) -> None:
        launch = SubmittedLaunch(name, kernel, owners)
        for listener in self._listeners:
            listener.launch_submitted(launch)

    def launch_completed(self, report: LaunchReport) -> None:
        for listener in self._listeners:
            listener.launch_completed(report)

    def device_built(self, device: Device) -> None:
        for listener in self._listeners:
            listener.device_built(device)

    def look(self) -> None:
        for listener in self._listeners:
            listener.look()


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
