"""The collectives' benchmark: series of all-reduces and what they say together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from tilewright.benches.collectives_run import CollectiveCase, Measured, run_case
from tilewright.device.ipcq import RingKind
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.machine.coords import PeCoord
from tilewright.machine.grid import Grid
from tilewright.processes import in_processes
from tilewright.records import installed_versions
from tilewright.records.collectives_bench import CollectivesBenchRecord, EventRow
from tilewright.units import format_bytes, format_ps

__all__ = ("CollectivesBenchSpec", "Series", "measure", "run_collectives_bench")

MIB = 2**20
PES_OF_A_SIP = 128
PES_OF_A_CUBE = 8
SLOT_BYTES = 4_096  # small: what has come of a block is read while the rest travels


class Series(Enum):
    """What may be measured."""

    ALPHA_BETA = "alpha-beta"  # one PE a rank, one chunk a step, beside the closed form
    BUS = "bus"  # large tensors over whole SIPs
    TORUS = "torus"  # 8 MiB on six SIPs
    SWEEP = "sweep"  # sizes and algorithms on fabrics of four SIPs
    BUFFER = "buffer"  # rings in TCM, SRAM and HBM
    EVENTS = "events"  # what more ranks cost the simulator


@dataclass(frozen=True, slots=True)
class CollectivesBenchSpec:
    """Sizes of the series."""

    series: tuple[Series, ...] = tuple(Series)
    bus_bytes: int = 64 * MIB
    bus_sips: tuple[int, ...] = (2, 4, 8, 16)
    alpha_beta_bytes: tuple[int, ...] = (64 * 1024, 256 * 1024, MIB)  # above it goes in rounds
    sweep_bytes: tuple[int, ...] = (64 * 1024, 2 * MIB)
    event_chunk_bytes: int = 1024  # of a message, whatever the number of ranks
    num_processes: int = 1  # cases do not know each other; figures are the same


def run_collectives_bench(
    spec: CollectivesBenchSpec, progress: Callable[[str], None]
) -> CollectivesBenchRecord:
    """All series that are asked for, one after the other."""
    cases = [(series, case) for series in spec.series for case in _cases(spec, series)]
    found: dict[Series, list[Measured]] = {series: [] for series in spec.series}
    for case, measured in zip(
        cases, measure([case for _, case in cases], spec.num_processes, progress), strict=True
    ):
        found[case[0]].append(measured)
    rows = [each.row for measured in found.values() for each in measured]
    return CollectivesBenchRecord(
        versions=installed_versions(engine=resolve_engine(AUTO, native_built=native_built()).value),
        alpha_beta_worst_error=_worst_error(found.get(Series.ALPHA_BETA, ())),
        bus_fraction_large=_bus_fraction(found.get(Series.BUS, ())),
        bus_spread=_bus_spread(found.get(Series.BUS, ())),
        torus6_64k_ratio=_torus_ratio(found.get(Series.TORUS, ())),
        event_growth=_event_growth(found.get(Series.EVENTS, ())),
        rows=tuple(rows),
        events=tuple(
            EventRow(ranks=each.row.ranks, chunks=_event_chunks(each.row.ranks), events=each.events)
            for each in found.get(Series.EVENTS, ())
        ),
    )


def measure(
    cases: Sequence[CollectiveCase], num_processes: int, progress: Callable[[str], None]
) -> list[Measured]:
    """In the order of the cases; ``progress`` is told each when it is done.

    The largest begin first, so that processes end together.
    """
    found: dict[CollectiveCase, Measured] = {}

    def note(case: CollectiveCase, measured: Measured) -> None:
        found[case] = measured
        row = measured.row
        progress(
            f"{len(found)} of {len(cases)}: {row.series}, {row.algorithm} on {row.topology},"
            f" {format_bytes(row.bytes)} in {format_ps(row.latency_ps)}"
        )

    order = sorted(cases, key=lambda case: case.num_bytes)[::-1]
    for case, measured in in_processes(run_case, order, num_processes):
        note(case, measured)
    return [found[case] for case in cases]


def _cases(spec: CollectivesBenchSpec, series: Series) -> list[CollectiveCase]:
    return [replace(case, series=series.value) for case in _cases_of(spec, series)]


def _cases_of(spec: CollectivesBenchSpec, series: Series) -> list[CollectiveCase]:
    match series:
        case Series.ALPHA_BETA:
            return _alpha_beta_cases(spec)
        case Series.SWEEP:
            return [
                CollectiveCase(
                    "ahbm", num_bytes, algorithm, _fabric(kind, 4), topology=f"{kind} of 4"
                )
                for kind in ("ring", "torus", "mesh", "switch")
                for algorithm in ("ring", "halving_doubling", "double_tree", "torus_2d")
                for num_bytes in spec.sweep_bytes
            ]
        case Series.BUS:
            return [
                CollectiveCase(
                    "ahbm",
                    spec.bus_bytes,
                    "ring",
                    _fabric(kind, sips),
                    topology=f"{kind} of {sips}",
                )
                for kind in ("ring", "switch")
                for sips in spec.bus_sips
            ]
        case Series.TORUS:
            return [CollectiveCase("ahbm-6sip", 8 * MIB, topology="torus of 2 x 3")]
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
            return [
                CollectiveCase(
                    "ahbm-8sip", _event_chunks(ranks) * spec.event_chunk_bytes, "hierarchical", (),
                    _first_pes(ranks), topology=f"{ranks} PEs",
                )
                for ranks in (PES_OF_A_SIP, 8 * PES_OF_A_SIP)
            ]  # fmt: skip


def _event_chunks(num_ranks: int) -> int:
    """Blocks of the hierarchical plan: one for each PE of a cube and each SIP."""
    return PES_OF_A_CUBE * num_ranks // PES_OF_A_SIP


def _alpha_beta_cases(spec: CollectivesBenchSpec) -> list[CollectiveCase]:
    shapes = (
        ("line", 8, "ring"),
        ("ring", 8, "ring"),
        ("switch", 8, "halving_doubling"),
        ("switch", 8, "double_tree"),
        ("torus", 8, "torus_2d"),
    )
    return [
        CollectiveCase(
            "ahbm", num_bytes, algorithm, _fabric(kind, sips),
            tuple((PeCoord(sip, 0, 0),) for sip in range(sips)),
            in_one_chunk=True, slot_bytes=SLOT_BYTES, topology=f"{kind} of {sips}",
        )
        for num_bytes in spec.alpha_beta_bytes
        for kind, sips, algorithm in shapes
    ]  # fmt: skip


def _fabric(kind: str, sips: int) -> tuple[str, ...]:
    """A line is a mesh of one row."""
    columns = {"torus": sips // 2, "mesh": sips // 2, "line": sips}.get(kind)
    shape = () if columns is None else (f"fabric.columns={columns}",)
    name = "mesh" if kind == "line" else kind
    return (f"sip.count={sips}", f"fabric.kind={name}", *shape)


def _first_pes(num_ranks: int) -> tuple[tuple[PeCoord, ...], ...]:
    grid = Grid(num_sips=8, columns=4, rows=4, num_pes_per_cube=8)
    return tuple((grid.coord(flat),) for flat in range(num_ranks))


def _worst_error(measured: Sequence[Measured]) -> float | None:
    errors = [abs(each.row.latency_ps / each.row.alpha_beta_ps - 1) for each in measured]
    return max(errors, default=None)


def _bus_fraction(measured: Sequence[Measured]) -> float | None:
    return min((each.row.bound_ps / each.row.latency_ps for each in measured), default=None)


def _bus_spread(measured: Sequence[Measured]) -> float | None:
    rates = [each.row.busbw_gbs for each in measured]
    return max(rates) / min(rates) - 1 if rates else None


def _torus_ratio(measured: Sequence[Measured]) -> float | None:
    """Beside the bound of the links, or the latencies of the turns where they are longer."""
    ratios = [
        each.row.latency_ps / max(each.row.bound_ps, each.prediction.alpha_ps) for each in measured
    ]
    return max(ratios, default=None)


def _event_growth(measured: Sequence[Measured]) -> float | None:
    if len(measured) < 2:
        return None
    few, many = measured[0], measured[-1]
    sizes = [each.row.ranks * _event_chunks(each.row.ranks) for each in (few, many)]
    return (many.events / few.events) / (sizes[1] / sizes[0])
