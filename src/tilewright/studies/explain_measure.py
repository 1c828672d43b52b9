"""Advised changes, run: the measured gain of each beside its bound.

A gain is of means over refresh phases (ADR 0029): at one phase a change also moves the run to where
refresh falls elsewhere, which may weigh more than what the change does.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from time import monotonic
from typing import NamedTuple

from tilewright.analysis.phases import LONG_INTERVALS, half_width_ps
from tilewright.engine import AUTO, EngineKind, native_built, resolve_engine
from tilewright.engine.spec import Limits
from tilewright.errors import BenchError, RecordError, TilewrightError
from tilewright.machine.build import build_machine, machine_hash, phase_shift_ps, refresh_of
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import MachineSpec
from tilewright.programs.parameter import parse_parameters
from tilewright.records import RunRecord
from tilewright.records.explain import Advice, ExplainRecord
from tilewright.report.explain.run import explain_run
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest, execute
from tilewright.studies.run.source import find_source

SET_OPTION = "--set "
PHASE_COUNTS = (2, 4, 8, 16)  # each set of phases contains those before it
NARROW_GAIN = 0.01  # of the latency: half-width from which on more phases are run

Tell = Callable[[str], None]


def request_of_record(record: RunRecord) -> RunRequest:
    """Return the request that a record is of; refuses programs and machines that have changed."""
    if record.machine.is_own:
        fix = "change the machine in the program, and run it again"
        found = "a program that describes its own machine"
        raise BenchError(record.what.program, found, "a machine that --set reaches", fix)
    source = find_source(record.what.program)
    if source.file_hash != record.what.file_hash:
        found = "a file that has changed since the record was written"
        fix = "run it again with --record"
        raise BenchError(source.name, found, "the program that was recorded", fix)
    machine = build_machine(_parsed(record))
    if machine_hash(machine.spec) != record.machine_hash:
        found = f"another machine than the recorded one in {record.machine.source!r}"
        fix = "run the program again with --record"
        raise BenchError(record.what.program, found, "the same machine", fix)
    options = record.what.options
    texts = {name: str(value) for name, value in record.parameters.items()}
    parameters = parse_parameters(source.parameters, texts, where=source.name)
    return RunRequest(
        source, parameters, machine, record.machine.source, record.machine.overrides,
        str(options.get("device", "all")), record.seed or 0, _engine(record),
        data=bool(options.get("data", True)), limits=Limits(**record.limits),
    )  # fmt: skip


class _Outcome(NamedTuple):
    """A latency, and what is equal for two runs that do the same commands."""

    latency_ps: int
    work: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change saves: a share of the mean latency without it, at the same refresh phases."""

    share: float
    half_width: float | None  # confidence 95 %; None: one phase
    base_ps: tuple[int, ...]  # latencies without the change, by phase
    changed_ps: tuple[int, ...]
    does_same: bool = True  # commands and bytes are those of the run without the change


@dataclass(slots=True)
class GainMeter:
    """Runs a program on its machine and on changed ones; no phase of its machine runs twice."""

    request: RunRequest
    num_phases: int = 1  # at least
    _base: dict[int, _Outcome] = field(default_factory=dict)  # by shift of refresh

    def base(self, shift_ps: int) -> _Outcome:
        """Return the run without a change, with refresh so much later."""
        if shift_ps not in self._base:
            self._base[shift_ps] = _outcome(replace(self.request, refresh_shift_ps=shift_ps))
        return self._base[shift_ps]

    def changed(self, assignment: str) -> RunRequest:
        """Return the request on the machine with ``PATH=VALUE``."""
        overrides = (*self.request.overrides, assignment)
        machine = build_machine(parse_machine(self.request.machine_source, overrides))
        return replace(self.request, machine=machine, overrides=overrides)

    def gain(self, assignment: str) -> Gain:
        """Run with ``PATH=VALUE`` until the gain is known to 1 % of the latency, or 16 phases."""
        changed = self.changed(assignment)
        found: dict[int, _Outcome] = {}
        for shifts_ps in self._samples():
            for shift_ps in shifts_ps:
                if shift_ps not in found:
                    found[shift_ps] = _outcome(replace(changed, refresh_shift_ps=shift_ps))
            gain = self._gain(shifts_ps, found)
            if gain.half_width is None or gain.half_width <= NARROW_GAIN:
                break
        return gain

    def _samples(self) -> Iterator[list[int]]:
        """Yield sets of phases, each as shifts of refresh, from few to many."""
        refresh = refresh_of(self.request.machine.spec)
        if refresh is None or self.base(0).latency_ps > LONG_INTERVALS * refresh.interval_ps:
            yield [0]
            return
        spec = self.request.machine.spec
        more = [count for count in PHASE_COUNTS if count >= self.num_phases]
        for count in more or [self.num_phases]:
            yield [phase_shift_ps(spec, index, count) for index in range(count)]

    def _gain(self, shifts_ps: list[int], found: Mapping[int, _Outcome]) -> Gain:
        base_ps = [self.base(shift_ps).latency_ps for shift_ps in shifts_ps]
        changed_ps = [found[shift_ps].latency_ps for shift_ps in shifts_ps]
        saved_ps = [before - after for before, after in zip(base_ps, changed_ps, strict=True)]
        width_ps, total_ps = half_width_ps(saved_ps), sum(base_ps)
        return Gain(
            share=sum(saved_ps) / total_ps,
            half_width=None if width_ps is None else width_ps * len(base_ps) / total_ps,
            base_ps=tuple(base_ps),
            changed_ps=tuple(changed_ps),
            does_same=self.base(0).work == found[0].work,
        )


def measure_advice(
    record: RunRecord, explained: ExplainRecord, *, seconds: float, tell: Tell | None = None
) -> ExplainRecord:
    """Run the advised changes in their order until the wall time is up; the notes say how many.

    A change that has begun is completed, so that each figure is whole. A record without a critical
    path is explained anew, by running the program with one.
    """
    until = monotonic() + seconds
    request = request_of_record(record)
    if record.path is None:
        record = _with_path(record, request, tell)
        explained = explain_run(record, explained.source)
    meter = GainMeter(request, 1 if record.phases is None else record.phases.count)
    if explained.advice:
        _check_repeats(record, meter.base(0).latency_ps)
    measured: list[Advice] = []
    notes: list[str] = []
    for index, advice in enumerate(explained.advice):
        if monotonic() >= until:
            left = f"measured {index} of {len(explained.advice)} changes in {seconds:g} s"
            notes.append(f"{left}; --seconds gives it more")
            break
        if tell is not None:
            tell(f"run with {advice.option} ({index + 1} of {len(explained.advice)})")
        gain = meter.gain(advice.option.removeprefix(SET_OPTION))
        measured.append(_with_gain(advice, gain))
        if not gain.does_same:
            text = "the program does other work on that machine, to which the bound does not apply"
            notes.append(f"{advice.option}: {text}")
    rest = explained.advice[len(measured) :]
    update = {"advice": (*measured, *rest), "notes": (*explained.notes, *notes)}
    return explained.model_copy(update=update)


def _with_gain(advice: Advice, gain: Gain) -> Advice:
    """Return advice with what was measured; its bound is a share of the same mean."""
    num_phases = len(gain.base_ps)
    return advice.model_copy(
        update={
            "bound": max(0.0, 1 - advice.least_ps / (sum(gain.base_ps) / num_phases)),
            "mean_ps": sum(gain.changed_ps) / num_phases,
            "gain": gain.share,
            "gain_half_width": gain.half_width,
            "num_phases": num_phases,
        }
    )


def _with_path(record: RunRecord, request: RunRequest, tell: Tell | None) -> RunRecord:
    """Return the record of the same run with its critical path."""
    count = 1 if record.phases is None else record.phases.count
    with redirect_stdout(StringIO()):  # it has been heard when it was recorded
        again = run_program(request, RunWatch(phases=count, progress=tell))
    if again.status == "interrupted":
        raise KeyboardInterrupt
    _check_repeats(record, again.latency_ps)
    return again


def _check_repeats(record: RunRecord, latency_ps: int) -> None:
    if latency_ps != record.latency_ps:
        found = f"{latency_ps} ps where the record has {record.latency_ps}"
        fix = "run it again with --record; draw random numbers by torch.seed"
        raise BenchError(record.what.program, found, "the same time each run", fix)


def _outcome(request: RunRequest) -> _Outcome:
    execution = execute(request, lambda _: ((), None), is_silent=True)
    if execution.is_interrupted:
        raise KeyboardInterrupt
    work = tuple((each.num_programs, each.counters) for each in execution.measured)
    return _Outcome(execution.latency_ps, work)


def _parsed(record: RunRecord) -> MachineSpec:
    try:
        return parse_machine(record.machine.source, record.machine.overrides)
    except TilewrightError as error:
        reason = f"{error.where}: {error.found}"
        found = f"the machine {record.machine.source!r}, which cannot be read again ({reason})"
        fix = "run it from the folder of the record, on a machine file or preset"
        raise BenchError(record.what.program, found, "a machine to change", fix) from error


def _engine(record: RunRecord) -> EngineKind:
    try:
        wanted = EngineKind(record.versions.engine)
    except ValueError as error:
        found = f"the engine {record.versions.engine!r}"
        expected = f"one of {', '.join(kind.value for kind in EngineKind)}"
        raise RecordError(
            "versions.engine", found, expected, "run it again with --record"
        ) from error
    is_built = native_built()
    return resolve_engine(wanted if is_built else AUTO, native_built=is_built)
