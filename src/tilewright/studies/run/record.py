"""From what executions of a program left to the record of its run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import isfinite
from typing import Any

from tilewright.analysis.usage import UsedBlock, bottleneck_of
from tilewright.machine.build import machine_hash
from tilewright.machine.field import flat_fields
from tilewright.machine.node import place_name
from tilewright.machine.totals import totals_of
from tilewright.memory.sanitizer.finding import Finding
from tilewright.records import (
    LaunchRow,
    MachineFigures,
    MachineOfRun,
    RunParts,
    RunRecord,
    Totals,
    WhatRan,
    installed_versions,
)
from tilewright.records.document import JsonScalar
from tilewright.records.phases import PhaseSpread
from tilewright.records.run.part import (
    ChannelUse,
    PathTimes,
    ResourceUse,
    SanitizerFinding,
)
from tilewright.report.format import bottleneck_words
from tilewright.runtime.request import LaunchReport
from tilewright.studies.run.execute import Execution, RunRequest
from tilewright.units import format_ps

COMMAND = "run"
NUM_LINES = 16


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a run took its time."""

    breakdown_ps: RunParts
    blocks: Sequence[UsedBlock] = ()
    lines_ps: Mapping[str, int] = field(default_factory=dict)  # the longest first
    notes: tuple[str, ...] = ()
    path: PathTimes | None = None
    resources: tuple[ResourceUse, ...] = ()
    channels: ChannelUse | None = None


def build_record(
    request: RunRequest,
    execution: Execution,
    explained: Explained,
    options: Mapping[str, JsonScalar],
    phases: PhaseSpread | None = None,
) -> RunRecord:
    """Build the record; all figures are of the measured window but for the totals."""
    latency_ps = execution.latency_ps
    verdict, failures = _verdict(execution, phases)
    found = bottleneck_of(explained.breakdown_ps, explained.blocks, latency_ps)
    findings = None if execution.findings is None else tuple(map(_finding, execution.findings))
    is_right = verdict.get("values_ok") is not False and not failures and not findings
    outcome_notes = () if execution.outcome is None else execution.outcome.notes
    return RunRecord.of(
        explained,
        status="interrupted" if execution.is_interrupted else "complete",
        ok=is_right and not execution.is_interrupted,
        failures=tuple(failures),
        what=WhatRan(
            command=COMMAND,
            program=request.source.name,
            options=dict(options),
            file_hash=request.source.file_hash,
        ),
        versions=installed_versions(engine=request.engine.value),
        machine=_machine(request),
        machine_hash=machine_hash(request.machine.spec),
        parameters=dict(request.parameters),
        seed=request.seed,
        limits=asdict(request.limits),
        latency_ps=latency_ps,
        phases=phases,
        lines_ps=dict(islice(explained.lines_ps.items(), NUM_LINES)),
        bottleneck=bottleneck_words(found),
        bottleneck_figures=found,
        totals=_totals(execution),
        utilisation={block.name: block.share for block in explained.blocks},
        counters=_counters(execution.measured),
        num_pes=len({pe for launch in execution.measured for pe in launch.pes}),
        launches=tuple(_row(each, execution.measured) for each in execution.reports),
        findings=findings,
        notes=(*outcome_notes, *execution.notes, *explained.notes),
        **verdict,
    )


def _verdict(execution: Execution, phases: PhaseSpread | None) -> tuple[dict[str, Any], list[str]]:
    """Return what the program says of its values and its least time, and what is wrong with it."""
    outcome = execution.outcome
    mean_ps = execution.latency_ps if phases is None else phases.mean_ps
    latency_ps = execution.latency_ps if phases is None else phases.min_ps
    if outcome is None:
        return {}, []
    error, bound = outcome.max_error, outcome.bound
    failures = []
    verdict = {
        "values_ok": outcome.values_ok,
        "max_error": error if error is not None and isfinite(error) else None,
        "tolerance": outcome.tolerance,
        "bound_ps": bound.total_ps,
        "bound_latency_ps": bound.latency_ps,
        "bound_resource": bound.resource,
        "bounds_ps": dict(bound.parts),
        "ratio": mean_ps / bound.total_ps if bound.total_ps and mean_ps else None,
    }
    if error is not None and not isfinite(error):
        failures.append("some values are no finite numbers")
    if bound.total_ps > latency_ps:
        text = f"the latency, {format_ps(latency_ps)}, is below its lower bound"
        failures.append(f"{text}, {format_ps(bound.total_ps)}")
    return verdict, failures


def _finding(found: Finding) -> SanitizerFinding:
    return SanitizerFinding.of(found, kind=found.kind.value)


def _machine(request: RunRequest) -> MachineOfRun:
    spec = request.machine.spec
    return MachineOfRun(
        name=spec.name,
        source=request.machine_source,
        overrides=request.overrides,
        figures=MachineFigures.of(totals_of(request.machine)),
        fields=flat_fields(spec),
        is_own=request.is_own_machine,
    )


def _totals(execution: Execution) -> Totals:
    counters = _counters(execution.reports)
    return Totals(
        time_ps=execution.now_ps,
        num_events=execution.num_events,
        num_launches=len(execution.reports),
        loaded_bytes=counters.get("loaded_bytes", 0),
        stored_bytes=counters.get("stored_bytes", 0),
    )


def _counters(launches: Sequence[LaunchReport]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for launch in launches:
        total.update(asdict(launch.counters))
    return dict(total)


def _row(launch: LaunchReport, measured: Sequence[LaunchReport]) -> LaunchRow:
    return LaunchRow.of(
        launch,
        num_pes=len(launch.pes),
        last_pe=None if launch.last_pe is None else place_name(launch.last_pe),
        is_measured=launch in measured,
    )
