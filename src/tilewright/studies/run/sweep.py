"""One program at several points of its parameters."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

from tilewright.errors import BenchError
from tilewright.machine.build import machine_hash
from tilewright.processes import in_processes
from tilewright.programs.builtin.gemm import sweep_points
from tilewright.programs.parameter import parse_parameters
from tilewright.records import installed_versions
from tilewright.records.document import JsonScalar
from tilewright.records.run.record import RunSweepRecord, SweepPoint
from tilewright.studies.run.command import RunWatch, run_program
from tilewright.studies.run.execute import RunRequest
from tilewright.studies.run.fit import fit_note
from tilewright.studies.run.source import RunSource

READY = "ready"
READY_POINTS = MappingProxyType({"matmul": sweep_points})

Points = Sequence[Mapping[str, Any]]


def sweep_of(source: RunSource, texts: Sequence[str]) -> Points:
    """The points that ``ready`` stands for, or every combination of ``name=value,value`` texts."""
    if READY in texts:
        if len(texts) > 1 or source.name not in READY_POINTS:
            with_points = ", ".join(READY_POINTS)
            found = f"--sweep {READY} of {source.name}" + (" and more" if len(texts) > 1 else "")
            fix = "name parameters and values: --sweep m=128,256"
            raise BenchError("sweep", found, f"it alone, of one of: {with_points}", fix)
        return READY_POINTS[source.name]()
    axes = [_axis(source, text) for text in texts]
    names = [name for name, _ in axes]
    if len(set(names)) < len(names):
        found = f"a parameter twice: {', '.join(names)}"
        raise BenchError("sweep", found, "each once", "list all its values in one --sweep")
    chosen = product(*(values for _, values in axes))
    return [dict(zip(names, values, strict=True)) for values in chosen]


def _axis(source: RunSource, text: str) -> tuple[str, list[Any]]:
    name, equals, values = text.partition("=")
    if not equals or not values:
        fix = "write it like --sweep m=128,256"
        raise BenchError("sweep", repr(text), f"NAME=VALUE,VALUE or {READY}", fix)
    parsed = [
        parse_parameters(source.parameters, {name: value}, where=source.name)[name]
        for value in values.split(",")
    ]
    return name, parsed


def run_sweep(
    request: RunRequest,
    points: Points,
    watch: RunWatch | None = None,
    num_processes: int = 1,
) -> RunSweepRecord:
    """Run all points, each by itself; Ctrl-C leaves those that are complete."""
    watch = watch or RunWatch()
    tell, alone = watch.progress, replace(watch, progress=None)
    found: dict[int, SweepPoint] = {}

    def run(number: int) -> SweepPoint | None:
        chosen = replace(
            request,
            parameters={**request.parameters, **points[number]},
            free=request.free - points[number].keys(),
        )
        record = run_program(chosen, alone)
        if record.status == "interrupted":
            return None
        fitted = fit_note(chosen.parameters, record.parameters)
        return SweepPoint.of(record, parameters=dict(points[number]), fitted=fitted)

    if tell is not None:
        tell(f"{len(points)} points, {min(num_processes, len(points))} at a time")
    with suppress(KeyboardInterrupt):
        for number, point in in_processes(run, range(len(points)), num_processes):
            if point is None:
                break
            found[number] = point
            if tell is not None:
                tell(f"{len(found)} of {len(points)} done: {_text(points[number])}")
    is_interrupted = len(found) < len(points)
    swept = {name for point in points for name in point}
    return RunSweepRecord(
        status="interrupted" if is_interrupted else "complete",
        ok=not is_interrupted and all(point.ok for point in found.values()),
        program=request.source.name,
        parameters={name: v for name, v in request.parameters.items() if name not in swept},
        machine=request.machine.spec.name,
        machine_hash=machine_hash(request.machine.spec),
        seed=request.seed,
        versions=installed_versions(engine=request.engine.value),
        points=tuple(point for _, point in sorted(found.items())),
    )


def _text(point: Mapping[str, JsonScalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
