"""``tilewright run``: a program, its values and its time, and why it took that time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.analysis.breakdown import break_down_run, fields_of_run, lines_of_run
from tilewright.analysis.launch_path import MAX_ROWS, PathListener, last_ends
from tilewright.analysis.listener import Listener
from tilewright.analysis.phases import sample_phases
from tilewright.analysis.trace.critical_path import MESSAGE_WAIT
from tilewright.analysis.usage import channel_use, most_used, resource_use
from tilewright.device.build import Device
from tilewright.engine import AUTO, Auto, EngineKind, native_built, resolve_engine
from tilewright.engine.spec import Limits
from tilewright.errors import BenchError, TilewrightError, UsageError
from tilewright.machine import Machine, load_machine
from tilewright.machine.spec import MachineSpec
from tilewright.programs.parameter import ParameterValue, parse_parameters
from tilewright.records import RunRecord, check_target, whole_file
from tilewright.records.document import JsonScalar
from tilewright.records.phases import PhaseSpread
from tilewright.report.perfetto.recorder import TraceRecorder
from tilewright.studies.run.execute import (
    Execution,
    ProgressListener,
    RunRequest,
    execute,
)
from tilewright.studies.run.fit import fit_note, run_fitted
from tilewright.studies.run.record import Explained, build_record
from tilewright.studies.run.source import find_source
from tilewright.units import format_ps

TRACE_LIMIT = 1_000_000  # events of a timeline
NOT_REPEATED = "no breakdown, since the program does not do the same when it runs once more"
NOT_SAMPLED = "no mean over refresh phases, since the program failed at another phase"
NUM_BLOCKS = 12  # of the most used units, links and memories

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Who looks on; none of it changes a simulated time."""

    trace: Path | None = None
    trace_limit: int = TRACE_LIMIT
    progress: Tell | None = None
    is_once: bool = False  # no second execution: the breakdown has only the parts of launches
    phases: int | None = 1  # of refresh, at which the program runs; None: by the rule of ADR 0029


def run_program(request: RunRequest, watch: RunWatch) -> RunRecord:
    """Run a program, then once more to see where its time went, then at other refresh phases.

    Ctrl-C leaves a record of what is known by then. A file that was asked for is there whole or
    not at all.
    """
    if watch.trace is not None:
        check_target(watch.trace, "trace")
    asked = request
    request, execution = run_fitted(asked, lambda fitted: _first(fitted, watch))
    if (note := fit_note(asked.parameters, request.parameters)) is not None:
        execution.notes.append(note)
    if not execution.num_requests and not execution.is_interrupted:
        found = "a program that asked nothing of the machine"
        fix = "make tensors and launch kernels on the context that run(torch) gets"
        raise BenchError(request.source.name, found, "at least one request", fix)
    explained = Explained(break_down_run(execution.window, execution.measured, {}))
    with _interruptible(execution):
        explained = _explain(request, execution, watch, explained)
    about = _about(request, execution)
    spread = None
    if not execution.is_interrupted:
        with _interruptible(execution):
            spread = _spread(about.machine.spec, request, execution, watch)
    options: dict[str, JsonScalar] = {
        "device": request.device,
        "data": request.data,
        "sanitize": request.sanitize,
        "once": watch.is_once,
        "phases": watch.phases,
    }
    return build_record(about, execution, explained, options, spread)


def _about(request: RunRequest, execution: Execution) -> RunRequest:
    """Return the request with the machine that the program has run on: it may build its own."""
    if execution.machine is None or execution.machine is request.machine:
        return request
    source = f"of {request.source.name}"
    return replace(
        request,
        machine=execution.machine,
        machine_source=source,
        overrides=(),
        is_own_machine=True,
    )


def _first(request: RunRequest, watch: RunWatch) -> Execution:
    if watch.trace is None:
        return execute(
            request, lambda device: (_progress(device, watch, "run"), None), is_silent=False
        )
    recorders: list[TraceRecorder] = []

    def listeners_of(device: Device) -> tuple[Sequence[Listener], Any]:
        recorder = TraceRecorder(device, file, limit=watch.trace_limit)
        recorders.append(recorder)
        listeners = [recorder, *_progress(device, watch, "run with a trace")]
        return listeners, recorder.commands

    with whole_file(watch.trace, "trace") as file:
        execution = execute(request, listeners_of, is_silent=False)
        for recorder in recorders:
            with _interruptible(execution):
                recorder.close()
            execution.notes.extend(_trace_notes(recorder, watch.trace))
    return execution


@contextmanager
def _interruptible(execution: Execution) -> Iterator[None]:
    """Ctrl-C ends only what is inside; the record says that it was pressed."""
    try:
        yield
    except KeyboardInterrupt:
        execution.is_interrupted = True


def _trace_notes(recorder: TraceRecorder, file: Path) -> Iterator[str]:
    writer = recorder.writer
    yield f"trace: {writer.num_events} events in {file}"
    if writer.num_left_out:
        yield f"trace: {writer.num_left_out} more were left out; raise --trace-limit to have them"


def _progress(device: Device, watch: RunWatch, what: str) -> list[Listener]:
    return [] if watch.progress is None else [ProgressListener(device, watch.progress, what)]


def _explain(
    request: RunRequest, execution: Execution, watch: RunWatch, coarse: Explained
) -> Explained:
    """By a second execution that traces what ended last, if there is anything to explain."""
    ends_ps = last_ends(execution.measured)
    if watch.is_once or execution.is_interrupted or not ends_ps:
        return coarse
    try:
        paths = _paths(request, execution, watch, ends_ps, "once more, for the breakdown")
        if paths is not None and any(
            each.parts_ps.get(MESSAGE_WAIT) for each in paths.paths.values()
        ):
            paths = _paths(request, execution, watch, ends_ps, "with all that send", is_across=True)
    except TilewrightError as error:
        return Explained(coarse.breakdown_ps, notes=(f"{NOT_REPEATED}: it failed ({error.found})",))
    if execution.is_interrupted:
        return coarse
    if paths is None:
        advice = "its launches had other times; draw random numbers by torch.seed"
        return Explained(coarse.breakdown_ps, notes=(f"{NOT_REPEATED}: {advice}",))
    return _explained(execution, paths)


def _paths(
    request: RunRequest,
    execution: Execution,
    watch: RunWatch,
    ends_ps: Mapping[int, int],
    what: str,
    *,
    is_across: bool = False,
) -> PathListener | None:
    """Return what one more execution traces; None if it differs or is interrupted."""
    found: list[PathListener] = []

    def listeners_of(device: Device) -> tuple[Sequence[Listener], Any]:
        found.append(PathListener(device, ends_ps, is_across=is_across))
        return [found[0], *_progress(device, watch, what)], found[0].commands

    again = execute(request, listeners_of, is_silent=True)
    execution.is_interrupted = execution.is_interrupted or again.is_interrupted
    return found[0] if again.times == execution.times else None


def _spread(
    spec: MachineSpec, request: RunRequest, execution: Execution, watch: RunWatch
) -> PhaseSpread | None:
    """Return the latency over refresh phases; None, and a note, if another phase fails."""

    def latency_of(shift_ps: int) -> int:
        shifted = replace(request, refresh_shift_ps=shift_ps)
        what = f"with refresh {format_ps(shift_ps)} later"
        again = execute(
            shifted, lambda device: (_progress(device, watch, what), None), is_silent=True
        )
        if again.is_interrupted:
            raise KeyboardInterrupt
        return again.latency_ps

    count = 1 if watch.is_once else watch.phases
    try:
        return sample_phases(spec, count, execution.latency_ps, latency_of)
    except TilewrightError as error:
        execution.notes.append(f"{NOT_SAMPLED} ({error.found})")
        return None


def _explained(execution: Execution, paths: PathListener) -> Explained:
    parts = break_down_run(execution.window, execution.measured, paths.paths, paths.cut)
    before, after = paths.usage
    blocks = most_used(before, after, paths.servers, NUM_BLOCKS)
    notes = [f"breakdown: of a path only the last {MAX_ROWS} steps are told apart"]
    lines_ps = lines_of_run(execution.window, execution.measured, paths.lines_ps)
    return Explained(
        parts,
        blocks,
        lines_ps,
        tuple(notes if paths.cut else ()),
        fields_of_run(paths.machine, execution.window, execution.measured, paths.fields),
        resource_use(before, after, paths.servers),
        channel_use(before, after, paths.servers),
    )


BUILT = "of the caller"  # the source of a machine that was built before


def run(
    program: str | Path,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    machine: str | Path | Machine | None = None,
    overrides: Sequence[str] = (),
    device: str = "all",
    seed: int = 0,
    engine: EngineKind | Auto = AUTO,
    data: bool = True,
    sanitize: bool = False,
    limits: Limits | None = None,
    once: bool = False,
    phases: int | None = None,
) -> RunRecord:
    """Run a ready program, or a Python file with ``run(torch)``, and return its record.

    The record is that of ``tilewright run --json``: latency, bound, breakdown, whether values are
    right, and what the machine is. ``machine`` is a preset, a file or a built machine; without it
    the program's own is taken. ``once`` and ``phases`` are the options of the command.

    >>> record = run("gemm_single_pe", {"k": 64}, machine="ahbm-small", once=True)
    >>> record.ok, record.parameters["k"]
    (True, 64)
    """
    source = find_source(str(program))
    given = {name: str(value) for name, value in (parameters or {}).items()}
    values = parse_parameters(source.parameters, given, where=source.name)
    named = source.machine if machine is None else machine
    built = _built(named, overrides)
    request = RunRequest(
        source,
        values,
        built,
        BUILT if named is built else str(named),
        tuple(overrides),
        device,
        seed,
        resolve_engine(engine, native_built=native_built()),
        data,
        sanitize,
        frozenset(values.keys() - given.keys()),
        limits or Limits(),
        is_own_machine=named is built,
    )
    return run_program(request, RunWatch(is_once=once, phases=phases))


def _built(machine: str | Path | Machine, overrides: Sequence[str]) -> Machine:
    """Return the machine, which may be there already."""
    if not isinstance(machine, Machine):
        return load_machine(machine, overrides)
    if overrides:
        fix = "give them to load_machine, which builds it"
        raise UsageError("run", "overrides of a machine that is built", "a preset or a file", fix)
    return machine
