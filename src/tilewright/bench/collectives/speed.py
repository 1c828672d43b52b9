"""The collectives' benchmark: series of all-reduces and what they say together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilewright.bench.collectives.cases import (
    EVENT_CHUNKS,
    CollectivesBenchSpec,
    Series,
    cases_of,
)
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.processes import in_processes
from tilewright.records import installed_versions
from tilewright.records.bench import CollectivesBenchRecord, EventRow
from tilewright.units import format_bytes, format_ps
from tilewright.validation.collective.measure import CollectiveCase, Measured, machine_of, run_case


def run_collectives_bench(
    spec: CollectivesBenchSpec, progress: Callable[[str], None]
) -> CollectivesBenchRecord:
    """All series that are asked for, one after the other."""
    cases = [
        (series, case if series is Series.EVENTS else replace(case, phases=spec.phases))
        for series in spec.series
        for case in cases_of(spec, series)
    ]
    found: dict[Series, list[Measured]] = {series: [] for series in spec.series}
    for case, measured in zip(
        cases, measure([case for _, case in cases], spec.num_processes, progress), strict=True
    ):
        found[case[0]].append(measured)
    return record_of(found)


def record_of(found: Mapping[Series, Sequence[Measured]]) -> CollectivesBenchRecord:
    """What the series say together; a figure whose series is not there is None."""
    return CollectivesBenchRecord(
        versions=installed_versions(engine=resolve_engine(AUTO, native_built=native_built()).value),
        alpha_beta_worst_error=_worst_error(found.get(Series.ALPHA_BETA, ())),
        whole_device_worst_ratio=_worst_ratio(found.get(Series.WHOLE, ())),
        bus_fraction_large=_bus_fraction(found.get(Series.BUS, ())),
        bus_spread=_bus_spread(found.get(Series.BUS, ())),
        torus6_64k_ratio=_torus_ratio(found.get(Series.TORUS, ())),
        event_growth=_event_growth(found.get(Series.EVENTS, ())),
        rows=tuple(each.row for measured in found.values() for each in measured),
        events=tuple(
            EventRow(ranks=each.row.ranks, chunks=EVENT_CHUNKS, events=each.events)
            for each in found.get(Series.EVENTS, ())
        ),
    )


def measure(
    cases: Sequence[CollectiveCase], num_processes: int, progress: Callable[[str], None]
) -> list[Measured]:
    """In the order of the cases; ``progress`` is told each when it is done.

    Those that move most begin first, so that processes end together.
    """
    found: dict[CollectiveCase, Measured] = {}

    def note(case: CollectiveCase, measured: Measured) -> None:
        found[case] = measured
        row = measured.row
        progress(
            f"{len(found)} of {len(cases)}: {row.series}, {row.algorithm} on {row.topology},"
            f" {format_bytes(row.bytes)} in {format_ps(row.figure_ps)}"
        )

    order = sorted(cases, key=_moved_bytes, reverse=True)
    for case, measured in in_processes(run_case, order, num_processes):
        note(case, measured)
    return [found[case] for case in cases]


def _moved_bytes(case: CollectiveCase) -> int:
    return case.num_bytes * (len(case.pes) or machine_of(case).grid.num_sips)


def _worst_error(measured: Sequence[Measured]) -> float | None:
    errors = [abs(each.row.mean_ps / each.row.alpha_beta_ps - 1) for each in measured]
    return max(errors, default=None)


def _worst_ratio(measured: Sequence[Measured]) -> float | None:
    return max((each.row.mean_ps / each.row.alpha_beta_ps for each in measured), default=None)


def _bus_fraction(measured: Sequence[Measured]) -> float | None:
    return min((each.row.rate_ps / each.row.mean_ps for each in measured), default=None)


def _bus_spread(measured: Sequence[Measured]) -> float | None:
    rates = [each.row.busbw_gbs for each in measured]
    return max(rates) / min(rates) - 1 if rates else None


def _torus_ratio(measured: Sequence[Measured]) -> float | None:
    """Beside the bound of the links, or the latencies of the turns where they are longer."""
    ratios = [
        each.row.mean_ps / max(each.row.bound_ps, each.prediction.alpha_ps) for each in measured
    ]
    return max(ratios, default=None)


def _event_growth(measured: Sequence[Measured]) -> float | None:
    if len(measured) < 2:
        return None
    few, many = measured[0], measured[-1]
    return (many.events / few.events) / (many.row.ranks / few.row.ranks)  # chunks are as many
