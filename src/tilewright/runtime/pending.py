"""The handle of a launch that may be under way."""

from typing import Any

from tilewright.runtime.driver import Driver
from tilewright.runtime.report import LaunchReport
from tilewright.runtime.request import Request


class Pending:
    """A launch that may be under way."""

    def __init__(self, driver: Driver, request: Request, keeps: tuple[Any, ...] = ()) -> None:
        self.request = request
        self._keeps = keeps  # alive as long as programs may use it
        self._driver = driver
        self._report: LaunchReport | None = None

    def __repr__(self) -> str:
        state = "complete" if self.is_completed else "under way"
        return f"<Pending {self.request.what}, {state}>"

    @property
    def is_completed(self) -> bool:
        return self.request.is_completed

    def wait(self) -> LaunchReport:
        """Wait until the host knows that all programs have ended, and return the report.

        Raises LaunchEndedError if an error has ended them, and MessageError if they have sent what
        none has received.
        """
        self._driver.wait(self.request)
        return self.report

    @property
    def report(self) -> LaunchReport:
        """The report of a launch that has succeeded; raises what ``wait`` raises."""
        self.request.check()  # refuses one that is under way
        return self._report  # type: ignore[return-value]  # there once it is complete

    def settle(self, report: LaunchReport | None) -> None:
        """Note that the launch is over; None: an error has ended it."""
        self._report = report
        self._keeps = ()
