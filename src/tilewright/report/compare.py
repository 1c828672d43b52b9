"""What differs between the records of two runs."""

from collections.abc import Iterator, Mapping
from math import hypot
from typing import TypeVar

from tilewright.records import RunRecord
from tilewright.records.document import JsonScalar
from tilewright.records.explain import CompareRecord, FieldChange, FigureChange

Value = TypeVar("Value")


def compare_runs(
    before: RunRecord, after: RunRecord, before_name: str, after_name: str
) -> CompareRecord:
    """Names are those of the files."""
    settings = tuple(_changes(_settings(before), _settings(after)))
    versions = tuple(_changes(_versions(before), _versions(after)))
    machine = tuple(_changes(_machine(before), _machine(after)))
    verdicts = tuple(_changes(_verdict(before), _verdict(after)))
    means_ps = [before.mean_ps, after.mean_ps]
    noise_ps = _noise_ps(before, after)
    return CompareRecord(
        before=before_name,
        after=after_name,
        is_same_run=not settings and not machine,
        speedup=means_ps[0] / means_ps[1] if means_ps[1] else None,
        noise_ps=noise_ps,
        is_within_noise=None if noise_ps is None else abs(means_ps[0] - means_ps[1]) <= noise_ps,
        settings=(*settings, *versions),
        verdicts=verdicts,
        machine=machine,
        figures=tuple(_figures(_totals(before), _totals(after), keep=("latency_ps",))),
        parts=tuple(_figures(before.breakdown_ps.by_name(), after.breakdown_ps.by_name())),
        lines=tuple(_figures(before.lines_ps, after.lines_ps)),
        utilisation=tuple(_changes(before.utilisation, after.utilisation)),
    )


def _noise_ps(*records: RunRecord) -> float | None:
    """Return the half-width of the difference: squares of independent half-widths add up."""
    widths_ps = [_width_ps(record) for record in records]
    known_ps = [width_ps for width_ps in widths_ps if width_ps is not None]
    return hypot(*known_ps) if len(known_ps) == len(widths_ps) else None


def _width_ps(record: RunRecord) -> float | None:
    """Return the half-width of a mean; 0 where the phase of refresh does not matter."""
    if record.phases is None:
        has_refresh = record.machine.fields.get("cube.hbm.refresh.kind", "none") != "none"
        is_banked = record.machine.fields.get("cube.hbm.model") != "simple"
        return None if has_refresh and is_banked else 0.0
    if record.phases.reason == "long":
        return 0.0
    return None if record.phases.may_miss_refresh else record.phases.half_width_ps


def _settings(record: RunRecord) -> dict[str, JsonScalar]:
    return {
        "program": record.what.program,
        "file_hash": record.what.file_hash,
        "seed": record.seed,
        **{f"parameters.{name}": value for name, value in record.parameters.items()},
        **{f"options.{name}": value for name, value in record.what.options.items()},
    }


def _verdict(record: RunRecord) -> dict[str, JsonScalar]:
    return {name: getattr(record, name) for name in ("status", "ok", "values_ok", "bottleneck")}


def _versions(record: RunRecord) -> dict[str, JsonScalar]:
    return {f"versions.{name}": value for name, value in dict(record.versions).items()}


def _machine(record: RunRecord) -> dict[str, JsonScalar]:
    return {"name": record.machine.name, **record.machine.fields}


def _totals(record: RunRecord) -> dict[str, int | None]:
    return {
        "latency_ps": record.figure_ps,
        "bound_ps": record.bound_ps,
        **{f"totals.{name}": value for name, value in dict(record.totals).items()},
        **{f"counters.{name}": value for name, value in record.counters.items()},
    }


def _changes(
    before: Mapping[str, JsonScalar], after: Mapping[str, JsonScalar]
) -> Iterator[FieldChange]:
    for name in _names(before, after):
        one, other = before.get(name), after.get(name)
        if one != other or type(one) is not type(other):
            yield FieldChange(name=name, before=one, after=other)


def _figures(
    before: Mapping[str, int | None], after: Mapping[str, int | None], keep: tuple[str, ...] = ()
) -> Iterator[FigureChange]:
    for name in _names(before, after):
        one, other = before.get(name), after.get(name)
        if one != other or name in keep:
            ratio = other / one if one and other is not None else None
            yield FigureChange(name=name, before=one, after=other, ratio=ratio)


def _names(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """In the order of the first, then what only the second has."""
    return [*before, *(name for name in after if name not in before)]
