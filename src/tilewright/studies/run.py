"""``tilewright run``: a program, its values and its time, and why it took that time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.device.build import Device
from tilewright.errors import BenchError, TilewrightError
from tilewright.records import RunRecord, check_target, whole_file
from tilewright.records.document import JsonScalar
from tilewright.report.run_usage import most_used
from tilewright.report.trace import TraceRecorder
from tilewright.studies.run_breakdown import break_down_run, lines_of_run
from tilewright.studies.run_execute import Execution, RunRequest, execute
from tilewright.studies.run_listener import Listener, ProgressListener, TraceListener
from tilewright.studies.run_path import MAX_ROWS, PathListener
from tilewright.studies.run_record import Explained, build_record

__all__ = ("RunWatch", "run_program")

TRACE_LIMIT = 1_000_000  # events of a timeline
NOT_REPEATED = "no breakdown, since the program does not do the same when it runs once more"
NUM_BLOCKS = 12  # of the most used units, links and memories

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunWatch:
    """Who looks on; none of it changes a simulated time."""

    trace: Path | None = None
    trace_limit: int = TRACE_LIMIT
    progress: Tell | None = None
    is_once: bool = False  # no second execution: the breakdown has only the parts of launches


def run_program(
    request: RunRequest, watch: RunWatch, options: Mapping[str, JsonScalar]
) -> RunRecord:
    """Run a program, then once more to see where its time went.

    Ctrl-C leaves a record of what is known by then. A file that was asked for is there whole or
    not at all.
    """
    if watch.trace is not None:
        check_target(watch.trace, "trace")
    execution = _first(request, watch)
    if not execution.num_requests and not execution.is_interrupted:
        found = "a program that asked nothing of the machine"
        fix = "make tensors and launch kernels on the context that run(torch) gets"
        raise BenchError(request.source.name, found, "at least one request", fix)
    explained = Explained(break_down_run(execution.window, execution.measured, {}))
    with _interruptible(execution):
        explained = _explain(request, execution, watch, explained)
    return build_record(request, execution, explained, options)


def _first(request: RunRequest, watch: RunWatch) -> Execution:
    if watch.trace is None:
        return execute(
            request, lambda device: (_progress(device, watch, "run"), None), is_silent=False
        )
    recorders: list[TraceRecorder] = []

    def listeners_of(device: Device) -> tuple[Sequence[Listener], Any]:
        recorder = TraceRecorder(device, file, limit=watch.trace_limit)
        recorders.append(recorder)
        listeners = [TraceListener(recorder), *_progress(device, watch, "run with a trace")]
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
    ends_ps = {
        each.last_owner: each.completed_ps
        for each in execution.measured
        if each.last_owner is not None
    }
    if watch.is_once or execution.is_interrupted or not ends_ps:
        return coarse
    found: list[PathListener] = []

    def listeners_of(device: Device) -> tuple[Sequence[Listener], Any]:
        last_owner = max(ends_ps, key=lambda owner: ends_ps[owner])
        found.append(PathListener(device, ends_ps, last_owner))
        listeners = [found[0], *_progress(device, watch, "once more, for the breakdown")]
        return listeners, found[0].commands

    try:
        again = execute(request, listeners_of, is_silent=True)
    except TilewrightError as error:
        return Explained(coarse.parts, notes=(f"{NOT_REPEATED}: it failed ({error.found})",))
    if again.is_interrupted:
        execution.is_interrupted = True
        return coarse
    if again.times != execution.times:
        advice = "its launches had other times; draw random numbers by torch.seed"
        return Explained(coarse.parts, notes=(f"{NOT_REPEATED}: {advice}",))
    return _explained(execution, found[0])


def _explained(execution: Execution, paths: PathListener) -> Explained:
    parts = break_down_run(execution.window, execution.measured, paths.paths, paths.cut)
    before, after = paths.usage
    blocks = most_used(before, after, paths.servers, NUM_BLOCKS)
    notes = [f"breakdown: of a path only the last {MAX_ROWS} steps are told apart"]
    lines_ps = lines_of_run(execution.window, execution.measured, paths.lines_ps)
    return Explained(parts, blocks, lines_ps, tuple(notes if paths.cut else ()))
