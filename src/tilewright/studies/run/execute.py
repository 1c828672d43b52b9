"""Runs a program once: on which contexts, who looks on, and what is known of it afterwards."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from time import monotonic
from typing import Any

from tilewright.analysis.listener import Listeners, ListenersOf, SubmittedLaunch
from tilewright.device.build import Device
from tilewright.engine import EngineKind
from tilewright.engine.spec import Limits
from tilewright.errors import BenchError, TilewrightError
from tilewright.host import RuntimeContext
from tilewright.machine.build import Machine, shift_refresh
from tilewright.memory.sanitizer.finding import Findings
from tilewright.programs.contract import BenchOutcome
from tilewright.runtime.request import LaunchReport
from tilewright.studies.run.source import RunSource
from tilewright.units import format_ps

SECONDS_PER_TEXT = 0.2


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
    free: frozenset[str] = frozenset()  # parameters that nobody has set: they may become smaller
    limits: Limits = field(default_factory=Limits)
    refresh_shift_ps: int = 0  # later than the machine says, on every machine of the program
    is_own_machine: bool = False  # the program describes its machine itself


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
    machine: Machine | None = None  # what it ran on; None: it was interrupted before that
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
    def latency_ps(self) -> int:
        """Length of the window."""
        start_ps, end_ps = self.window
        return end_ps - start_ps

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


def execute(request: RunRequest, listeners_of: ListenersOf, *, is_silent: bool) -> Execution:
    """Run the program; Ctrl-C ends it and leaves what is known by then.

    The sanitizer looks on only where the program is heard.
    """
    execution = Execution()
    contexts = _Contexts(request, listeners_of, sanitize=request.sanitize and not is_silent)
    try:
        torch = contexts.build(request.machine)
        with redirect_stdout(StringIO()) if is_silent else nullcontext():
            found = request.source.call(torch, dict(request.parameters), contexts.build)
        execution.outcome = _checked_outcome(request.source, found)
        for context in contexts.made:
            context.wait_all()
    except KeyboardInterrupt:
        execution.is_interrupted = True
    except TilewrightError as error:
        for context in contexts.made:
            if context.driver.watch is not None and len(context.findings):
                _add_findings(error, context.findings)
        raise
    if contexts.made:
        _note_end(execution, contexts)
    return execution


class _Contexts:
    """The contexts of one execution: that of the run, and those that its program asks for.

    A program that describes its own machine asks nothing of the first; then the run is about the
    next that it has built.
    """

    def __init__(self, request: RunRequest, listeners_of: ListenersOf, *, sanitize: bool) -> None:
        self.made: list[RuntimeContext] = []
        self._request = request
        self._listeners_of = listeners_of
        self._sanitize = sanitize
        self._listeners: Listeners | None = None

    def build(self, machine: Machine) -> RuntimeContext:
        """Make a context for a machine; listeners follow it if nothing was asked of the others."""
        request = self._request
        context = RuntimeContext(
            shift_refresh(machine, request.refresh_shift_ps), request.device,
            seed=request.seed, engine=request.engine,
            data=request.data, sanitize=self._sanitize, limits=request.limits,
        )  # fmt: skip
        if self._listeners is None:
            self._listeners = Listeners(*self._listeners_of(context.driver.device))
            self._listeners.attach(context.driver)
        elif not any(each.driver.requests.num_requests for each in self.made):
            self._listeners.device_built(context.driver.device)
            self._listeners.attach(context.driver)
        self.made.append(context)
        return context

    @property
    def used(self) -> RuntimeContext:
        """The first that something was asked of."""
        return next((each for each in self.made if each.driver.requests.num_requests), self.made[0])


def _add_findings(error: TilewrightError, findings: Findings) -> None:
    """A wrong access is often why the run failed."""
    error.found = f"{error.found}\nbefore that the sanitizer found\n{findings.text}"


def _note_end(execution: Execution, contexts: _Contexts) -> None:
    torch = contexts.used
    execution.machine = torch.machine
    execution.reports = torch.reports
    execution.num_requests = torch.driver.requests.num_requests
    execution.start_ps = torch.driver.requests.first_ps
    execution.now_ps = torch.now_ps
    execution.findings = None if torch.driver.watch is None else torch.findings
    execution.num_events = torch.driver.num_events
    for context in contexts.made:
        execution.notes += dict.fromkeys(context.notes)
    if torch is not contexts.made[0]:
        name = torch.machine.spec.name
        execution.notes.append(f"the program has built its own machine, {name!r}: figures are its")
    used = sum(each.driver.requests.num_requests > 0 for each in contexts.made)
    if used > 1:
        text = f"{used - 1} more machines of the program were used: not in the figures"
        execution.notes.append(text)
    if torch.driver.num_ends and not execution.is_interrupted:
        execution.notes.append(ENDED_NOTE)


def _checked_outcome(source: RunSource, found: Any) -> BenchOutcome | None:
    if found is None or isinstance(found, BenchOutcome):
        return found
    expected = "None, or a BenchOutcome that says what was measured"
    fix = "return nothing, or print what you want to see"
    raise BenchError(source.name, f"run(torch) returned {found!r}", expected, fix)
