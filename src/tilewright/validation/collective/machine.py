"""Collectives of machines: programs on PEs, rings in TCMs, memories and links.

A message takes all that the machine puts in its way, so closed forms hold for what grows with it:
so many bytes more take so many betas and gammas more, worked out here from the data sheet of the
small machine and read from no model. Whole times are held against the walk of a plan, and against
what no algorithm can beat on the links between SIPs.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial

from tilewright.collectives.operation import Operation
from tilewright.engine import EngineKind
from tilewright.machine.coords import PeCoord, SipCoord
from tilewright.records.bench import CollectiveRow
from tilewright.units import PS_PER_US
from tilewright.validation.collective.bound import LAWS, BoundLaw
from tilewright.validation.collective.measure import CollectiveCase, run_case
from tilewright.validation.engine_run import machine_named
from tilewright.validation.finding import Finding, Row, at_least, exact, near_model
from tilewright.validation.network import LinkGraph

KIB = 1024
MACHINE = "ahbm-small"
QUIET = ("cube.hbm.refresh.kind=none",)
SWITCH = ("fabric.kind=switch",)

# picoseconds of a KiB: the data sheet
LINK = 8_000  # 128 GB/s
PORT = 2_000  # of a TCM, either way: 512 GB/s
SLICE = 4_000  # 256 GB/s
VECTOR = 500  # 256 elements of f32, 512 of them in 1 ns


def _taken(kib: int) -> int:
    """A block more on the link, and its last quarter through both ports of a slot."""
    return kib * LINK + kib // 4 * 2 * PORT


def _summed(kib: int) -> int:
    """That, both operands out of the TCM, and the sum into it."""
    return _taken(kib) + kib * (3 * PORT + VECTOR)


def _run(
    kind: EngineKind, num_bytes: int, algorithm: str, fabric: tuple[str, ...], ranks: int,
    operation: Operation, *, is_pe: bool,
) -> CollectiveRow:  # fmt: skip
    pes = tuple((PeCoord(sip, 0, 0),) for sip in range(ranks)) if is_pe else ()
    overrides = (f"sip.count={ranks}", *QUIET, *fabric)
    case = CollectiveCase(
        MACHINE, num_bytes, algorithm, overrides, pes,
        in_one_chunk=is_pe, operation=operation, engine=kind,
    )  # fmt: skip
    return run_case(case).row


def check_growth(
    kind: EngineKind, *, operation: Operation, turn: Callable[[int], int], ranks: int, kib: int
) -> Finding:
    """A ring of PEs on a switch: blocks that are twice as long."""
    few, many = (
        _run(kind, ranks * size * KIB, "ring", SWITCH, ranks, operation, is_pe=True).latency_ps
        for size in (kib, 2 * kib)
    )
    in_and_out_ps = 2 * kib * SLICE
    return exact((ranks - 1) * turn(kib) + in_and_out_ps, many - few, "ps")


# -- whole times -----------------------------------------------------------------------------------

WALKED_BYTES = 512 * KIB
WALKED = (
    ("CO2 ring", "ring", ("fabric.kind=ring",)),
    ("CO4 halving and doubling", "halving_doubling", SWITCH),
    ("CO7 torus", "torus_2d", ("fabric.kind=torus", "fabric.columns=4")),
    ("CO8 ring on a line", "ring", ("fabric.kind=mesh", "fabric.columns=8")),
)


def check_walk(kind: EngineKind, *, algorithm: str, fabric: tuple[str, ...]) -> Finding:
    """An all-reduce of 8 PEs in 8 SIPs, beside alpha, beta and gamma of the machine's spec."""
    row = _run(kind, WALKED_BYTES, algorithm, fabric, 8, Operation.ALL_REDUCE, is_pe=True)
    return near_model(
        Fraction(row.alpha_beta_ps, PS_PER_US), Fraction(row.latency_ps, PS_PER_US), "us"
    )


# -- bounds ----------------------------------------------------------------------------------------

ROWS, COLUMNS = 2, 3
SIPS = ROWS * COLUMNS
BOUND_BYTES = SIPS * 64 * KIB
ALGORITHMS = ("ring", "torus_2d", "mesh_2d", "double_tree")


@cache
def links_of(kind: str) -> LinkGraph:
    """Return the links between SIPs, in bytes in a microsecond."""
    machine = machine_named(MACHINE, f"sip.count={SIPS}", *_shape(kind))
    places = [node.where for node in machine.nodes]
    ends = [(places[link.src], places[link.dst], link) for link in machine.links]
    between = tuple(
        (start.sip, end.sip, link.bytes_per_us)
        for start, end, link in ends
        if isinstance(start, SipCoord) and isinstance(end, SipCoord) and start != end
    )
    return LinkGraph(SIPS, between)


def _shape(kind: str) -> tuple[str, ...]:
    return (f"fabric.kind={kind}", f"fabric.columns={COLUMNS}")


@cache
def bound_run_ps(kind: EngineKind, fabric: str, algorithm: str, operation: Operation) -> int:
    """Ranks are whole SIPs."""
    shape = _shape(fabric)
    return _run(kind, BOUND_BYTES, algorithm, shape, SIPS, operation, is_pe=False).latency_ps


def check_bound(kind: EngineKind, *, law: BoundLaw) -> Finding:
    """Every algorithm that can: the one that comes nearest."""
    fabric = "torus" if law.wraps else "mesh"
    able = [name for name in law.algorithms if name in ALGORITHMS] or law.algorithms
    times = [
        bound_run_ps(kind, fabric, algorithm, operation)
        for operation in law.operations
        for algorithm in able
    ]
    bound_us = BOUND_BYTES * law.count(links_of(fabric))
    return at_least(bound_us, Fraction(min(times), PS_PER_US), "us")


def oracles() -> Iterator[Row]:
    for operation, turn in ((Operation.ALL_GATHER, _taken), (Operation.REDUCE_SCATTER, _summed)):
        for ranks, kib in ((3, 16), (5, 32)):
            check = partial(check_growth, operation=operation, turn=turn, ranks=ranks, kib=kib)
            name = f"CO1 ring {operation.value} of {ranks} SIPs, blocks of {kib} KiB more"
            yield f"{name}, on {MACHINE}", check
    for name, algorithm, fabric in WALKED:
        check = partial(check_walk, algorithm=algorithm, fabric=fabric)
        yield f"{name} all-reduce of 8 SIPs, 512 KiB, on {MACHINE}", check
    for law in LAWS:
        yield f"{law.name}, {ROWS} x {COLUMNS} SIPs of {MACHINE}", partial(check_bound, law=law)
