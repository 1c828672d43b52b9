"""What observes a run while simulated time passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tilewright.device.build import Device
from tilewright.machine.coords import PeCoord
from tilewright.runtime.driver import Driver
from tilewright.runtime.request import LaunchReport

LOOKS_PER_DRAIN = 64


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


ListenersOf = Callable[[Device], tuple[Sequence[Listener], Any]]
"""A function from a device to its listeners, and to what watches commands (or None)."""


class Listeners:
    """The observer of a driver: passes each event on to all listeners."""

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
