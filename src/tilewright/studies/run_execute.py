"""One execution of a program on a context of its own."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from tilewright.benches.programs.contract import BenchOutcome
from tilewright.device.build import Device
from tilewright.engine import EngineKind
from tilewright.errors import BenchError, TilewrightError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine
from tilewright.memory.sanitizer_finding import Findings
from tilewright.runtime.launch_report import LaunchReport
from tilewright.studies.run_listener import Listener, Listeners
from tilewright.studies.run_source import RunSource

__all__ = ("Execution", "RunRequest", "execute")

ENDED_NOTE = (
    "an error ended programs of the run: their time is told as transfers of the host, and what was "
    "in use counts from the error on"
)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run, on what, and how; everything but who looks on."""

    source: RunSource
    parameters: Mapping[str, Any]
    machine: Machine
    machine_source: str
    overrides: tuple[str, ...] = ()
    device: str = "all"
    seed: int = 0
    engine: EngineKind = EngineKind.REFERENCE
    data: bool = True
    sanitize: bool = False


@dataclass(slots=True)
class Execution:
    """What is known of a program that has run, or was interrupted on its way."""

    reports: tuple[LaunchReport, ...] = ()
    outcome: BenchOutcome | None = None
    start_ps: int = 0  # of its first request
    now_ps: int = 0
    num_requests: int = 0
    num_events: int = 0
    is_interrupted: bool = False
    findings: Findings | None = None  # of the sanitizer, if it looked on
    notes: list[str] = field(default_factory=list)

    @property
    def window(self) -> tuple[int, int]:
        """Of the measured launches, else of all, else of all requests; they have completed."""
        measured = self.reports if self.outcome is None else self.outcome.launches
        if not measured:
            return self.now_ps if self.is_interrupted else self.start_ps, self.now_ps
        first_ps = min(launch.submitted_ps for launch in measured)
        return first_ps, max(launch.completed_ps for launch in measured)

    @property
    def measured(self) -> tuple[LaunchReport, ...]:
        """All launches of the window, whether or not the program named them."""
        start_ps, end_ps = self.window
        return tuple(
            report
            for report in self.reports
            if report.submitted_ps >= start_ps and report.completed_ps <= end_ps
        )

    @property
    def times(self) -> tuple[tuple[int | None, ...], ...]:
        """What is equal for two executions of a program that does the same each time."""
        return tuple(
            (each.submitted_ps, each.last_end_ps, each.completed_ps, each.last_owner)
            for each in self.reports
        )


ListenersOf = Callable[[Device], tuple[Sequence[Listener], Any]]
"""Who looks on, given the device; and what watches commands, or None."""


def execute(request: RunRequest, listeners_of: ListenersOf, *, is_silent: bool) -> Execution:
    """Run the program; Ctrl-C ends it and leaves what is known by then.

    The sanitizer looks on only where the program is heard.
    """
    execution = Execution()
    torch: RuntimeContext | None = None
    try:
        torch = _context(request, sanitize=request.sanitize and not is_silent)
        listeners, commands = listeners_of(torch.driver.device)
        Listeners(listeners, commands).attach(torch.driver)
        with redirect_stdout(StringIO()) if is_silent else nullcontext():
            found = request.source.call(torch, dict(request.parameters))
        execution.outcome = _checked_outcome(request.source, found)
        torch.wait_all()
    except KeyboardInterrupt:
        execution.is_interrupted = True
    except TilewrightError as error:
        if torch is not None and torch.driver.watch is not None and len(torch.findings):
            _add_findings(error, torch.findings)
        raise
    if torch is not None:
        _note_end(execution, torch)
    return execution


def _context(request: RunRequest, *, sanitize: bool) -> RuntimeContext:
    return RuntimeContext(
        request.machine,
        request.device,
        seed=request.seed,
        engine=request.engine,
        data=request.data,
        sanitize=sanitize,
    )


def _add_findings(error: TilewrightError, findings: Findings) -> None:
    """A wrong access is often why the run failed."""
    error.found = f"{error.found}\nbefore that the sanitizer found\n{findings.text}"
    error.args = (error.where, error.found, *error.args[2:])


def _note_end(execution: Execution, torch: RuntimeContext) -> None:
    requests = torch.driver.requests
    execution.reports = torch.reports
    execution.num_requests = len(requests)
    execution.start_ps = min((each.submitted_ps for each in requests), default=0)
    execution.now_ps = torch.now_ps
    execution.findings = None if torch.driver.watch is None else torch.findings
    execution.num_events = torch.driver.num_events
    execution.notes += dict.fromkeys(torch.distributed.notes)
    if torch.driver.num_ends and not execution.is_interrupted:
        execution.notes.append(ENDED_NOTE)


def _checked_outcome(source: RunSource, found: Any) -> BenchOutcome | None:
    if found is None or isinstance(found, BenchOutcome):
        return found
    expected = "None, or a BenchOutcome that says what was measured"
    fix = "return nothing, or print what you want to see"
    raise BenchError(source.name, f"run(torch) returned {found!r}", expected, fix)
