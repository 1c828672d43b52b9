"""Layout and turn rule of a mesh of routers with a hole under the memory stack.

Packets go along their row, then along their column. So that neither meets the hole,

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
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.node import NodeKind, NodeName
from tilewright.machine.spec import CubeSpec, MeshSpec
from tilewright.machine.topology.layout import (
    DieLayout,
    RouterPlace,
    Step,
    Wire,
    nearest_router,
    spread_over,
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

    def crossing_column(self, source: Cell, target: Cell) -> int:
        """The column that a packet goes along: the target's, unless the hole is in between."""
        column = target[1]
        rows = range(min(source[0], target[0]), max(source[0], target[0]) + 1)
        if all((row, column) in self.index for row in rows):
            return column
        # ties: the one nearer to the source, then the lower
        return min(self.free_columns, key=lambda c: (abs(c - column), abs(c - source[1]), c))


def mesh_path(shape: MeshShape, one: int, other: int) -> tuple[Step, ...]:
    """Routers from ``one`` (left out) to ``other``, all at sublevel 0."""
    source, target = shape.cells[one], shape.cells[other]
    turn = shape.crossing_column(source, target)
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
            Wire(index, shape.index[cell], noc.pitch_um)
            for (row, column), index in shape.index.items()
            for cell in ((row, column + 1), (row + 1, column))
            if cell in shape.index
        ),
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
