"""The figures of a machine as a whole: what it could do at best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord, Side
from tilewright.machine.spec import DotArraySpec, HbmSpec, MachineSpec, MeshSpec, RingSpec


@dataclass(frozen=True, slots=True)
class MachineTotals:
    """Rates are bytes per microsecond, rounded down.

    A bisection is what crosses the middle of a network one way, along rows or columns, whichever
    is less; None where there is nothing to cut.
    """

    num_sips: int
    num_cubes: int
    num_pes: int
    f16_flop_per_s: int
    hbm_bytes: int
    hbm_bytes_per_us: int
    refreshed_hbm_bytes_per_us: int
    cube_bisection_bytes_per_us: int
    sip_bisection_bytes_per_us: int | None
    fabric_bisection_bytes_per_us: int | None


def totals_of(machine: Machine) -> MachineTotals:
    spec, grid = machine.spec, machine.grid
    hbm, gemm = spec.cube.hbm, spec.pe.gemm
    depth = gemm.depth if isinstance(gemm, DotArraySpec) else 1
    nominal = hbm.channel_rate * hbm.pseudo_channels * grid.num_cubes
    return MachineTotals(
        num_sips=grid.num_sips,
        num_cubes=grid.num_cubes,
        num_pes=grid.num_pes,
        # a multiply-add is two; a systolic array has one in each cell
        f16_flop_per_s=2 * gemm.rows * gemm.columns * depth * gemm.hz * grid.num_pes,
        hbm_bytes=hbm.capacity_bytes * grid.num_cubes,
        hbm_bytes_per_us=int(nominal),
        refreshed_hbm_bytes_per_us=int(nominal * usable_share(hbm)),
        cube_bisection_bytes_per_us=_cube_bisection(machine),
        sip_bisection_bytes_per_us=_sip_bisection(machine),
        fabric_bisection_bytes_per_us=_fabric_bisection(machine),
    )


def slice_bytes_per_us(spec: MachineSpec) -> int:
    """Nominal rate of one PE's slice of the HBM, rounded down."""
    return int(spec.cube.hbm.channel_rate * spec.cube.hbm.pseudo_channels / spec.cube.pes)


def usable_share(hbm: HbmSpec) -> Fraction:
    """What all-bank refresh leaves of a stream of reads; other kinds need not stop a stream."""
    if hbm.model == "simple":
        return hbm.simple_bytes_per_us / hbm.channel_rate
    if hbm.refresh.kind != "all_bank":
        return Fraction(1)
    timing = hbm.timing
    clocks = timing.rtp_clocks + timing.rp_clocks + timing.rcd_read_clocks
    lost_ps = clocks * timing.clock_ps + hbm.refresh.all_bank_ps
    return max(Fraction(0), 1 - Fraction(lost_ps, hbm.refresh.interval_ps))


def _cube_bisection(machine: Machine) -> int:
    layout, noc = machine.routes.topology.die.layout, machine.spec.cube.noc
    wires, places = layout.wires, layout.routers
    match noc:
        case MeshSpec() if noc.rows * noc.columns > 1:
            rows = [place.name.row or 0 for place in places]
            columns = [place.name.column or 0 for place in places]
            return _least_cut(wires, rows, columns) * noc.bytes_per_us
        case RingSpec() if noc.routers > 1:
            return _least_cut(wires, range(noc.routers)) * noc.bytes_per_us
        case _:  # one router: every port has its own output
            return machine.spec.cube.pes // 2 * noc.attach_bytes_per_us


def _sip_bisection(machine: Machine) -> int | None:
    spec, topology = machine.spec, machine.routes.topology
    if spec.cube.ucie is None or machine.grid.num_cubes_per_sip == 1:
        return None
    cells = [
        machine.grid.cell(CubeCoord(0, cube)) for cube in range(machine.grid.num_cubes_per_sip)
    ]
    joined = [
        (cube, topology.cube_of(topology.links[link].dst))
        for (cube, side), links in topology.crossings.items()
        if side in (Side.EAST, Side.SOUTH) and cube < machine.grid.num_cubes_per_sip
        for link in links
    ]
    wires = [(one, other) for one, other in joined if other is not None]
    columns, rows = ([cell[axis] for cell in cells] for axis in (0, 1))
    return _least_cut(wires, rows, columns) * spec.cube.ucie.bytes_per_us


def _fabric_bisection(machine: Machine) -> int | None:
    fabric, spec = machine.routes.topology.fabric, machine.spec.fabric
    num_sips = machine.grid.num_sips
    if num_sips == 1:
        return None
    if fabric.shape is None:
        return num_sips // 2 * spec.links * spec.bytes_per_us
    shape = fabric.shape
    wires = [
        (sip, other)
        for sip, side, _ in fabric.wires
        if side in (Side.EAST, Side.SOUTH) and (other := shape.neighbour(sip, side)) is not None
    ]
    rows = [sip // shape.columns for sip in range(num_sips)]
    columns = [sip % shape.columns for sip in range(num_sips)]
    return _least_cut(wires, rows, columns) * spec.bytes_per_us


def _least_cut(wires: Iterable[tuple[int, int]], *axes: Sequence[int]) -> int:
    """Wires across the middle of an axis, whose coordinate of each node is given; the fewest."""
    pairs = list(wires)
    counts = []
    for places in axes:
        size = max(places) + 1
        if size > 1:
            halves = [place < size // 2 for place in places]
            counts.append(sum(halves[one] != halves[other] for one, other in pairs))
    return min(counts)
