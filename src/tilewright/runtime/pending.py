"""The handle of a launch that may be under way."""

from typing import Any

from tilewright.runtime.driver import Driver
from tilewright.runtime.launch_report import LaunchReport
from tilewright.runtime.request import Request

__all__ = ("Pending",)


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
        """Until the host knows that all programs have ended."""
        self._driver.wait(self.request)
        return self.report

    @property
    def report(self) -> LaunchReport:
        """Of a launch that is complete."""
        if self._report is None:
            self.request.check()  # refuses one that is under way
        return self._report  # type: ignore[return-value]  # there once it is complete

    def settle(self, report: LaunchReport) -> None:
        self._report = report
        self._keeps = ()
