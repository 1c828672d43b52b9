"""What sits where on a compute die: routers, wires between them, and who sits on which router.

A layout is a pure function of the spec. On a die with one crossbar everything sits on it, at the
same distance.

**Mesh.** Packets go along their row, then along their column. So that neither meets the hole,

- the outermost rows and columns are free of it: it lies inside the mesh, as the spec demands;
- what sends sits in a *free* row, one that the hole does not cross: PEs, M_CPU, connections of the
  east and west port;
- what receives sits in a free column: PEs, SRAM, connections of the north and south port.

The M_CPU sits on the router nearest to its position, which may be in a column that the hole
crosses. From beyond the hole a packet then uses the nearest column that is free, and goes along the
target's row at the end. All such packets turn into one row, and only when they move towards one
side of the hole; so no cycle of waiting arises (``deadlock`` proves it for every machine).

PEs sit in the four corners NW, NE, SW, SE, dealt in turn, numbered corner by corner, each on its
own router: the column next to the hole first, from the north. More connections than free rows
share routers evenly.

**Ring.** It is drawn as a square that starts in its north-west corner. PEs are spread evenly over
the routers, each on its own. A quarter of the ring belongs to each side of the die, in the order
north, east, south, west; a port's connections are spread over its quarter. M_CPU and SRAM sit on
the router nearest to their position. A packet takes the shorter way round; one that passes from the
last router to the first, or back, uses sublevel 1 on that wire and behind it. No packet passes this
dateline twice, so neither sublevel closes a circle.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise, product
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.node import NodeKind, NodeName
from tilewright.machine.spec import CrossbarSpec, CubeSpec, MeshSpec, RingSpec

Step = tuple[int, int]
"""The router that a packet goes to next, and the sublevel of its channel on the way."""


@dataclass(frozen=True, slots=True)
class RouterPlace:
    """A router by its name in the first cube, and its place on the die."""

    name: NodeName
    position_um: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DieLayout:
    """Routers are known by their position in ``routers``.

    ``path(one, other)`` is the turn rule: the steps of a packet between two routers. A network that
    needs a dateline uses sublevels 0 and 1 of every level, so ``num_sublevels`` is 2.
    """

    routers: tuple[RouterPlace, ...]
    wires: tuple[tuple[int, int], ...]  # two routers that are joined both ways
    wire_um: int  # of each
    pe_routers: tuple[int, ...]
    m_cpu_router: int
    sram_router: int
    port_routers: Mapping[Side, tuple[int, ...]]  # of each connection; empty without ports
    attach_um: int
    port_reach_um: int  # from a router to the edge of the die; for pictures only
    num_sublevels: int
    path: Callable[[int, int], tuple[Step, ...]]


def spread_over(seats: Sequence[int], num_items: int) -> tuple[int, ...]:
    """Return the seat of each item: items keep their order, no seat has two more than another.

    >>> spread_over(range(8), 4), spread_over(range(2), 4)
    ((1, 3, 5, 7), (0, 0, 1, 1))
    """
    return tuple(seats[(2 * item + 1) * len(seats) // (2 * num_items)] for item in range(num_items))


def nearest_router(
    routers: tuple[RouterPlace, ...], candidates: Iterable[int], position_um: tuple[int, int]
) -> int:
    """The candidate nearest to a position; of equal ones the last: higher row, then column."""

    def distance(index: int) -> tuple[int, int]:
        x, y = routers[index].position_um
        return (x - position_um[0]) ** 2 + (y - position_um[1]) ** 2, -index

    return min(candidates, key=distance)


def ring_path(num_routers: int, one: int, other: int) -> tuple[Step, ...]:
    """Routers from ``one`` (left out) to ``other``; of two equal ways the one that counts up.

    >>> ring_path(8, 6, 1)
    ((7, 0), (0, 1), (1, 1))
    """
    ahead = (other - one) % num_routers
    forward = 2 * ahead <= num_routers
    num_steps, step = (ahead, 1) if forward else (num_routers - ahead, -1)
    places = [(one + step * number) % num_routers for number in range(num_steps + 1)]
    # the wire between the last router and the first, and all that follow it
    sublevels = accumulate((int(abs(after - at) != 1) for at, after in pairwise(places)), max)
    return tuple(zip(places[1:], sublevels, strict=True))


def plan_ring_layout(cube: CubeSpec, noc: RingSpec) -> DieLayout:
    num = noc.routers
    routers = tuple(
        RouterPlace(
            NodeName(NodeKind.RING_ROUTER, sip=0, cube=0, index=index), _position_um(index, noc)
        )
        for index in range(num)
    )
    joined = num if num > 2 else num - 1  # two routers have one wire, which is both ways round
    sides = (Side.NORTH, Side.EAST, Side.SOUTH, Side.WEST) if cube.ucie else ()
    connections = cube.ucie.connections if cube.ucie else 0
    on_ports = spread_over(range(num), 4 * connections)
    return DieLayout(
        routers=routers,
        wires=tuple((index, (index + 1) % num) for index in range(joined)),
        wire_um=noc.pitch_um,
        pe_routers=spread_over(range(num), cube.pes),
        m_cpu_router=nearest_router(routers, range(num), cube.m_cpu_position_um),
        sram_router=nearest_router(routers, range(num), cube.sram_position_um),
        port_routers=MappingProxyType(
            {
                side: on_ports[quarter * connections : (quarter + 1) * connections]
                for quarter, side in enumerate(sides)
            }
        ),
        attach_um=cube.attach_um,
        port_reach_um=noc.pitch_um // 2,
        num_sublevels=2,
        path=partial(ring_path, num),
    )


def _position_um(index: int, noc: RingSpec) -> tuple[int, int]:
    """In eighths of a micrometre a side is 2 n pitch long and a router (8 i + 4) pitch along."""
    side = 2 * noc.routers * noc.pitch_um
    corner, along = divmod((8 * index + 4) * noc.pitch_um, max(side, 1))
    x, y = ((along, 0), (side, along), (side - along, side), (0, side - along))[corner]
    return x // 8, y // 8


def plan_crossbar_layout(cube: CubeSpec, noc: CrossbarSpec) -> DieLayout:
    num_connections = cube.ucie.connections if cube.ucie else 0
    sides = Side if cube.ucie else ()
    name = NodeName(NodeKind.CROSSBAR, sip=0, cube=0)
    return DieLayout(
        routers=(RouterPlace(name, (noc.radius_um, noc.radius_um)),),
        wires=(),
        wire_um=0,
        pe_routers=(0,) * cube.pes,
        m_cpu_router=0,
        sram_router=0,
        port_routers=MappingProxyType(dict.fromkeys(sides, (0,) * num_connections)),
        attach_um=noc.radius_um,
        port_reach_um=noc.radius_um,
        num_sublevels=1,
        path=partial(ring_path, 1),  # there is one router
    )


Cell = tuple[int, int]  # row, column


@dataclass(frozen=True)
class MeshShape:
    """Rows and columns, and a hole in their middle; routers count along rows."""

    rows: int
    columns: int
    hole_rows: int = 0
    hole_columns: int = 0

    @cached_property
    def free_rows(self) -> tuple[int, ...]:
        """Rows that the hole does not cross."""
        return _free(self.rows, self.hole_rows if self.hole_columns else 0)

    @cached_property
    def free_columns(self) -> tuple[int, ...]:
        """Columns that the hole does not cross."""
        return _free(self.columns, self.hole_columns if self.hole_rows else 0)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cell of each router."""
        return tuple(
            (row, column)
            for row, column in product(range(self.rows), range(self.columns))
            if row in self.free_rows or column in self.free_columns
        )

    @cached_property
    def index(self) -> dict[Cell, int]:
        """The router of each cell."""
        return {cell: index for index, cell in enumerate(self.cells)}


def mesh_path(shape: MeshShape, one: int, other: int) -> tuple[Step, ...]:
    """Routers from ``one`` (left out) to ``other``, all at sublevel 0."""
    source, target = shape.cells[one], shape.cells[other]
    turn = target[1]  # the column that the packet goes along, unless the hole is in between
    rows = range(min(source[0], target[0]), max(source[0], target[0]) + 1)
    if not all((row, turn) in shape.index for row in rows):
        # ties: the one nearer to the source, then the lower
        columns = shape.free_columns
        turn = min(columns, key=lambda c: (abs(c - target[1]), abs(c - source[1]), c))
    cells = [
        *((source[0], column) for column in _between(source[1], turn)),
        *((row, turn) for row in _between(source[0], target[0])),
        *((target[0], column) for column in _between(turn, target[1])),
    ]
    return tuple((shape.index[cell], 0) for cell in cells)


def _between(first: int, last: int) -> range:
    """From ``first`` (left out) to ``last``, in either direction."""
    return range(first + 1, last + 1) if last >= first else range(first - 1, last - 1, -1)


def _free(size: int, hole: int) -> tuple[int, ...]:
    """Return the places of an axis that a hole in its middle leaves."""
    first = (size - hole) // 2
    return (*range(first), *range(first + hole, size))


def plan_mesh_layout(cube: CubeSpec, noc: MeshSpec) -> DieLayout:
    shape = MeshShape(noc.rows, noc.columns, noc.hole_rows, noc.hole_columns)
    routers = tuple(
        RouterPlace(
            NodeName(NodeKind.ROUTER, sip=0, cube=0, row=row, column=column),
            ((2 * column + 1) * noc.pitch_um // 2, (2 * row + 1) * noc.pitch_um // 2),
        )
        for row, column in shape.cells
    )
    in_free_row = [shape.index[cell] for cell in shape.cells if cell[0] in shape.free_rows]
    in_free_column = [shape.index[cell] for cell in shape.cells if cell[1] in shape.free_columns]
    return DieLayout(
        routers=routers,
        wires=tuple(
            (index, shape.index[cell])
            for (row, column), index in shape.index.items()
            for cell in ((row, column + 1), (row + 1, column))
            if cell in shape.index
        ),
        wire_um=noc.pitch_um,
        pe_routers=_pe_routers(shape, cube.pes),
        m_cpu_router=nearest_router(routers, in_free_row, cube.m_cpu_position_um),
        sram_router=nearest_router(routers, in_free_column, cube.sram_position_um),
        port_routers=MappingProxyType(_port_routers(shape, cube)),
        attach_um=cube.attach_um,
        port_reach_um=noc.pitch_um // 2,
        num_sublevels=1,
        path=partial(mesh_path, shape),
    )


def _pe_routers(shape: MeshShape, num_pes: int) -> tuple[int, ...]:
    rows = (
        [row for row in shape.free_rows if 2 * row < shape.rows],
        [row for row in shape.free_rows if 2 * row >= shape.rows],
    )
    columns = (
        [column for column in reversed(shape.free_columns) if 2 * column < shape.columns],
        [column for column in shape.free_columns if 2 * column >= shape.columns],
    )
    corners = [
        [shape.index[row, column] for column in some_columns for row in some_rows]
        for some_rows, some_columns in product(rows, columns)
    ]
    turns = range(max(map(len, corners)))
    dealt = [n for turn in turns for n, corner in enumerate(corners) if turn < len(corner)]
    counts = Counter(dealt[:num_pes])  # in turn; a full corner is passed over
    return tuple(index for n, corner in enumerate(corners) for index in corner[: counts[n]])


def _port_routers(shape: MeshShape, cube: CubeSpec) -> dict[Side, tuple[int, ...]]:
    if cube.ucie is None:
        return {}
    rows = spread_over(shape.free_rows, cube.ucie.connections)
    columns = spread_over(shape.free_columns, cube.ucie.connections)
    return {
        Side.NORTH: tuple(shape.index[0, column] for column in columns),
        Side.EAST: tuple(shape.index[row, shape.columns - 1] for row in rows),
        Side.SOUTH: tuple(shape.index[shape.rows - 1, column] for column in columns),
        Side.WEST: tuple(shape.index[row, 0] for row in rows),
    }
