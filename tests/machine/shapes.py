"""Small machines of every shape, and strategies that draw them."""

from collections.abc import Iterator
from math import lcm
from typing import Literal

from hypothesis import strategies as st

from tilewright.machine.build import Machine
from tilewright.machine.route import RouteTable
from tilewright.machine.spec import (
    CrossbarSpec,
    CubeSpec,
    FabricSpec,
    HbmSpec,
    IoChipletSpec,
    MachineSpec,
    MeshSpec,
    RingSpec,
    SipSpec,
    UcieSpec,
)

FabricKind = Literal["switch", "ring", "torus", "mesh"]
Noc = MeshSpec | RingSpec | CrossbarSpec


def cube_of(pes: int, noc: Noc, connections: int | None) -> CubeSpec:
    """A die with so many PEs and a memory that fits them."""
    hbm = HbmSpec(pseudo_channels=2 * pes, capacity_bytes=2 * pes * 2**24)
    ucie = None if connections is None else UcieSpec(connections=connections)
    return CubeSpec(pes=pes, noc=noc, hbm=hbm, ucie=ucie)


def single_die(pes: int, noc: Noc) -> MachineSpec:
    sip = SipSpec(count=1, columns=1, rows=1, io=None)
    return MachineSpec(sip=sip, cube=cube_of(pes, noc, None))


def open_mesh(side: int) -> MachineSpec:
    """One die, k x k routers without a hole, a PE on each of them."""
    return single_die(side * side, MeshSpec(rows=side, columns=side, hole_rows=0, hole_columns=0))


@st.composite
def networks(draw: st.DrawFn, most: int) -> tuple[Noc, int]:
    """A network and the most PEs that fit on it."""
    kind = draw(st.sampled_from(("mesh", "holed", "ring", "crossbar")))
    if kind == "crossbar":
        return CrossbarSpec(), most
    if kind == "ring":
        routers = draw(st.integers(1, 2 * most))
        return RingSpec(routers=routers), routers
    rows, columns = draw(st.integers(1, most)), draw(st.integers(1, most))
    hole_rows = hole_columns = 0
    if kind == "holed":
        hole_rows, hole_columns = draw(st.integers(1, 2)), draw(st.integers(1, 2))
        rows, columns = rows + hole_rows + 1, columns + hole_columns + 1
    mesh = MeshSpec(rows=rows, columns=columns, hole_rows=hole_rows, hole_columns=hole_columns)
    return mesh, (rows - hole_rows) * (columns - hole_columns)


@st.composite
def machines(draw: st.DrawFn, *, most_sips: int, most_cubes: int, most_pes: int) -> MachineSpec:
    """Any shape of network, cube mesh and fabric; ``most_cubes`` is per row and column."""
    noc, seats = draw(networks(5))
    pes = draw(st.integers(1, min(most_pes, seats)))
    position = st.tuples(st.integers(0, 20_000), st.integers(0, 20_000))
    where = {"m_cpu_position_um": draw(position), "sram_position_um": draw(position)}
    if draw(st.integers(0, 9)) == 0:
        return single_die(pes, noc).model_copy(
            update={"cube": cube_of(pes, noc, None).model_copy(update=where)}
        )
    count = draw(st.integers(1, most_sips))
    kind: FabricKind = draw(st.sampled_from(("switch", "ring", "torus", "mesh")))
    columns = None
    if kind in ("torus", "mesh"):
        columns = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
    sip = SipSpec(
        count=count,
        columns=draw(st.integers(1, most_cubes)),
        rows=draw(st.integers(1, most_cubes)),
        io=IoChipletSpec(),
    )
    cube = cube_of(pes, noc, draw(st.integers(1, 4))).model_copy(update=where)
    fabric = FabricSpec(kind=kind, columns=columns, links=draw(st.integers(4, 6)))
    return MachineSpec(sip=sip, cube=cube, fabric=fabric)


def terminals(machine: Machine) -> tuple[list[int], list[int]]:
    """Nodes that may request, and nodes that a route may end at."""
    nodes = list(enumerate(machine.nodes))
    requesters = [number for number, node in nodes if node.kind.may_request]
    return requesters, [number for number, node in nodes if node.kind.is_terminal]


def all_requests(routes: RouteTable) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every request of the machine, one by one, for every spread that makes a difference."""
    topology = routes.topology
    spreads = range(lcm(topology.num_connections, topology.fabric.period))
    nodes = list(enumerate(topology.nodes))
    for source in (number for number, node in nodes if node.kind.may_request):
        for target in (number for number, node in nodes if node.kind.is_terminal):
            if source != target:
                yield from (routes.request(source, target, spread) for spread in spreads)
