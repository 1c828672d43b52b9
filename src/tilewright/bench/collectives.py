"""The collectives' benchmark: series of collectives, and what they say together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tilewright.device.ipcq import RingKind
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.machine.coords import Grid, PeCoord
from tilewright.processes import in_processes
from tilewright.records import installed_versions
from tilewright.records.bench import CollectivesBenchRecord, EventRow
from tilewright.units import format_bytes, format_ps
from tilewright.validation.collective.measure import CollectiveCase, Measured, machine_of, run_case

KIB, MIB = 2**10, 2**20
PES_OF_A_SIP = 128
PES_OF_A_CUBE = 8
SLOT_BYTES = 4_096  # small: what has come of a block is read while the rest travels
EVENT_CHUNK_BYTES = 1_024  # of a message, whatever the number of ranks
EVENT_CHUNKS = 64  # of a rank's tensor

TABLE = (
    ("line", "ring"),
    ("ring", "ring"),
    ("switch", "halving_doubling"),
    ("switch", "double_tree"),
    ("torus", "torus_2d"),
)
"""Fabrics, and algorithms whose partners have links of their own there."""
TABLE_SIPS = 8
FIRST_OF_SIPS = tuple((PeCoord(sip, 0, 0),) for sip in range(TABLE_SIPS))


class Series(Enum):
    """What may be measured."""

    ALPHA_BETA = "alpha-beta"  # one PE a rank, one chunk a step, beside the closed form
    WHOLE = "whole-device"  # the same algorithms in chunks, on all PEs of a rank
    BUS = "bus"  # large tensors over whole SIPs
    TORUS = "torus"  # 8 MiB on six SIPs
    SWEEP = "sweep"  # sizes and algorithms on fabrics of four SIPs
    BUFFER = "buffer"  # rings in TCM, SRAM and HBM
    EVENTS = "events"  # what more ranks cost the simulator


@dataclass(frozen=True, slots=True)
class CollectivesBenchSpec:
    """Sizes of the series; bytes are of the whole buffer at a rank."""

    series: tuple[Series, ...] = tuple(Series)
    bus_bytes: int = 64 * MIB
    bus_sips: tuple[int, ...] = (2, 4, 8, 16)
    alpha_beta_bytes: tuple[int, ...] = (64 * KIB, 256 * KIB, MIB)  # above it goes in rounds
    whole_bytes: int = PES_OF_A_SIP * 64 * KIB
    sweep_bytes: tuple[int, ...] = (64 * KIB, 2 * MIB)
    phases: int | None = 1  # of refresh; None: by the rule of ADR 0029
    num_processes: int = 1  # cases do not know each other; figures are the same


def cases_of(spec: CollectivesBenchSpec, series: Series) -> list[CollectiveCase]:
    """Return the cases of a series."""
    return [replace(case, series=series.value) for case in _cases(spec, series)]


def _cases(spec: CollectivesBenchSpec, series: Series) -> Iterable[CollectiveCase]:
    match series:
        case Series.ALPHA_BETA:
            return [
                replace(_case(kind, TABLE_SIPS, algorithm, num_bytes), pes=FIRST_OF_SIPS,
                        in_one_chunk=True, slot_bytes=SLOT_BYTES)
                for num_bytes in spec.alpha_beta_bytes
                for kind, algorithm in TABLE
            ]  # fmt: skip
        case Series.WHOLE:
            return [
                _case(kind, TABLE_SIPS, algorithm, spec.whole_bytes) for kind, algorithm in TABLE
            ]
        case Series.BUS:
            return [
                _case(kind, sips, "ring", spec.bus_bytes)
                for kind in ("ring", "switch")
                for sips in spec.bus_sips
            ]
        case Series.TORUS:
            return [CollectiveCase("ahbm-6sip", 8 * MIB, topology="torus of 2 x 3")]
        case Series.SWEEP:
            return [
                _case(kind, 4, algorithm, num_bytes)
                for kind in ("ring", "torus", "mesh", "switch")
                for algorithm in ("ring", "halving_doubling", "double_tree", "torus_2d")
                for num_bytes in spec.sweep_bytes
                if algorithm != "torus_2d" or kind in ("torus", "mesh")  # else it is a ring
            ]
        case Series.BUFFER:
            return [
                CollectiveCase(
                    "ahbm-6sip", PES_OF_A_SIP * each, "torus_2d", buffer=kind,
                    topology="torus of 2 x 3",
                )
                for each in (256, 2_048, 16_384, 65_536)
                for kind in RingKind
            ]  # fmt: skip
        case Series.EVENTS:
            return [_event_case(num_sips) for num_sips in (1, 8)]


def _case(kind: str, sips: int, algorithm: str, num_bytes: int) -> CollectiveCase:
    """On whole SIPs of a fabric; a line is a mesh of one row."""
    columns = {"torus": sips // 2, "mesh": sips // 2, "line": sips}.get(kind)
    shape = () if columns is None else (f"fabric.columns={columns}",)
    name = "mesh" if kind == "line" else kind
    overrides = (f"sip.count={sips}", f"fabric.kind={name}", *shape)
    return CollectiveCase("ahbm", num_bytes, algorithm, overrides, topology=f"{kind} of {sips}")


def _event_case(num_sips: int) -> CollectiveCase:
    """A round has a chunk for each block of the hierarchical plan, which are a PE's and a SIP's.

    As many chunks for few ranks as for many: what a launch costs is an equal part of both.
    """
    grid = Grid(num_sips=8, columns=4, rows=4, num_pes_per_cube=PES_OF_A_CUBE)
    num_ranks = num_sips * PES_OF_A_SIP
    return CollectiveCase(
        "ahbm-8sip", EVENT_CHUNKS * EVENT_CHUNK_BYTES, "hierarchical",
        pes=tuple((grid.coord(flat),) for flat in range(num_ranks)), in_one_chunk=True,
        round_bytes=num_sips * PES_OF_A_CUBE * EVENT_CHUNK_BYTES, topology=f"{num_ranks} PEs",
    )  # fmt: skip


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
    results = measure([case for _, case in cases], spec.num_processes, progress)
    for (series, _), measured in zip(cases, results, strict=True):
        found[series].append(measured)
    return record_of(found)


def record_of(found: Mapping[Series, Sequence[Measured]]) -> CollectivesBenchRecord:
    """Return what the series say together; a figure whose series is not there is None."""
    rows = {series: [each.row for each in found.get(series, ())] for series in Series}
    over_paper = {
        series: [row.mean_ps / row.alpha_beta_ps for row in rows[series]]
        for series in (Series.ALPHA_BETA, Series.WHOLE)
    }
    rates = [row.busbw_gbs for row in rows[Series.BUS]]
    events = found.get(Series.EVENTS, ())
    return CollectivesBenchRecord(
        versions=installed_versions(engine=resolve_engine(AUTO, native_built=native_built()).value),
        alpha_beta_worst_error=max(
            (abs(ratio - 1) for ratio in over_paper[Series.ALPHA_BETA]), default=None
        ),
        whole_device_worst_ratio=max(over_paper[Series.WHOLE], default=None),
        bus_fraction_large=min(
            (row.rate_ps / row.mean_ps for row in rows[Series.BUS]), default=None
        ),
        bus_spread=max(rates) / min(rates) - 1 if rates else None,
        torus6_64k_ratio=_torus_ratio(found.get(Series.TORUS, ())),
        event_growth=_event_growth(events),
        rows=tuple(each.row for measured in found.values() for each in measured),
        events=tuple(
            EventRow(ranks=each.row.ranks, chunks=EVENT_CHUNKS, events=each.events)
            for each in events
        ),
    )


def measure(
    cases: Sequence[CollectiveCase], num_processes: int, progress: Callable[[str], None]
) -> list[Measured]:
    """In the order of the cases; ``progress`` is told each when it is done.

    Those that move most begin first, so that processes end together.
    """
    found: dict[CollectiveCase, Measured] = {}
    order = sorted(cases, key=_moved_bytes, reverse=True)
    for case, measured in in_processes(run_case, order, num_processes):
        found[case] = measured
        row = measured.row
        progress(
            f"{len(found)} of {len(cases)}: {row.series}, {row.algorithm} on {row.topology},"
            f" {format_bytes(row.bytes)} in {format_ps(row.figure_ps)}"
        )
    return [found[case] for case in cases]


def _moved_bytes(case: CollectiveCase) -> int:
    return case.num_bytes * (len(case.pes) or machine_of(case).grid.num_sips)


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
