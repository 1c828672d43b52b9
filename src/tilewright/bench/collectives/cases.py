"""The cases of the collectives' benchmark, series by series."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tilewright.device.ipcq import RingKind
from tilewright.machine.coords import Grid, PeCoord
from tilewright.validation.collective.measure import CollectiveCase

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
    return [replace(case, series=series.value) for case in _cases(spec, series)]


def _cases(spec: CollectivesBenchSpec, series: Series) -> Iterable[CollectiveCase]:
    match series:
        case Series.ALPHA_BETA:
            return [
                replace(_table_case(*entry, num_bytes), pes=_first_of_sips(), in_one_chunk=True,
                        slot_bytes=SLOT_BYTES)
                for num_bytes in spec.alpha_beta_bytes
                for entry in TABLE
            ]  # fmt: skip
        case Series.WHOLE:
            return [_table_case(*entry, spec.whole_bytes) for entry in TABLE]
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


def _table_case(kind: str, algorithm: str, num_bytes: int) -> CollectiveCase:
    return _case(kind, TABLE_SIPS, algorithm, num_bytes)


def _case(kind: str, sips: int, algorithm: str, num_bytes: int) -> CollectiveCase:
    """On whole SIPs of a fabric; a line is a mesh of one row."""
    columns = {"torus": sips // 2, "mesh": sips // 2, "line": sips}.get(kind)
    shape = () if columns is None else (f"fabric.columns={columns}",)
    name = "mesh" if kind == "line" else kind
    overrides = (f"sip.count={sips}", f"fabric.kind={name}", *shape)
    return CollectiveCase("ahbm", num_bytes, algorithm, overrides, topology=f"{kind} of {sips}")


def _first_of_sips() -> tuple[tuple[PeCoord, ...], ...]:
    return tuple((PeCoord(sip, 0, 0),) for sip in range(TABLE_SIPS))


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
