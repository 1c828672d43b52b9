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

from dataclasses import dataclass, field
from functools import partial
from itertools import product
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.node import NodeKind
from tilewright.machine.spec import CubeSpec, MeshSpec
from tilewright.machine.topology.layout import (
    DieLayout,
    RouterPlace,
    Step,
    Wire,
    nearest_router,
    spread_evenly,
)

Cell = tuple[int, int]  # row, column


@dataclass(frozen=True)
class MeshShape:
    """Rows and columns, and a hole in their middle; routers count along rows."""

    rows: int
    columns: int
    hole_rows: int = 0
    hole_columns: int = 0
    cells: tuple[Cell, ...] = field(init=False, repr=False)
    index: dict[Cell, int] = field(init=False, repr=False, compare=False)
    free_rows: tuple[int, ...] = field(init=False, repr=False)
    free_columns: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        has_hole = self.hole_rows > 0 and self.hole_columns > 0
        top, left = (self.rows - self.hole_rows) // 2, (self.columns - self.hole_columns) // 2
        hole_rows = range(top, top + self.hole_rows) if has_hole else range(0)
        hole_columns = range(left, left + self.hole_columns) if has_hole else range(0)
        cells = tuple(
            (row, column)
            for row in range(self.rows)
            for column in range(self.columns)
            if not (row in hole_rows and column in hole_columns)
        )
        values = {
            "cells": cells,
            "index": {cell: index for index, cell in enumerate(cells)},
            "free_rows": tuple(row for row in range(self.rows) if row not in hole_rows),
            "free_columns": tuple(
                column for column in range(self.columns) if column not in hole_columns
            ),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

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


@dataclass(frozen=True, slots=True)
class _Free:
    """Rows and columns that the hole does not cross."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


def plan_mesh_layout(cube: CubeSpec, noc: MeshSpec) -> DieLayout:
    shape = MeshShape(noc.rows, noc.columns, noc.hole_rows, noc.hole_columns)
    free = _Free(shape.free_rows, shape.free_columns)
    routers = tuple(
        RouterPlace(
            NodeKind.ROUTER,
            ((2 * column + 1) * noc.pitch_um // 2, (2 * row + 1) * noc.pitch_um // 2),
            row=row,
            column=column,
        )
        for row, column in shape.cells
    )
    in_free_row = [shape.index[cell] for cell in shape.cells if cell[0] in free.rows]
    in_free_column = [shape.index[cell] for cell in shape.cells if cell[1] in free.columns]
    return DieLayout(
        routers=routers,
        wires=_wires(shape, noc.pitch_um),
        pe_routers=_pe_routers(shape, free, cube.pes),
        m_cpu_router=nearest_router(routers, in_free_row, cube.m_cpu_position_um),
        sram_router=nearest_router(routers, in_free_column, cube.sram_position_um),
        port_routers=_port_routers(shape, free, cube),
        attach_um=cube.attach_um,
        port_reach_um=noc.pitch_um // 2,
        num_sublevels=1,
        path=partial(mesh_path, shape),
    )


def _wires(shape: MeshShape, pitch_um: int) -> tuple[Wire, ...]:
    wires = []
    for (row, column), index in shape.index.items():
        for cell in ((row, column + 1), (row + 1, column)):
            if cell in shape.index:
                wires.append(Wire(index, shape.index[cell], pitch_um))
    return tuple(wires)


def _pe_routers(shape: MeshShape, free: _Free, num_pes: int) -> tuple[int, ...]:
    rows = (
        [row for row in free.rows if 2 * row < shape.rows],
        [row for row in free.rows if 2 * row >= shape.rows],
    )
    columns = (
        [column for column in reversed(free.columns) if 2 * column < shape.columns],
        [column for column in free.columns if 2 * column >= shape.columns],
    )
    corners = [
        [shape.index[row, column] for column in some_columns for row in some_rows]
        for some_rows, some_columns in product(rows, columns)
    ]
    return tuple(index for corner in _deal(num_pes, corners) for index in corner)


def _deal(num_pes: int, corners: list[list[int]]) -> list[list[int]]:
    """One PE after the other to the corners in turn; a full corner is passed over."""
    counts = [0] * len(corners)
    corner = 0
    for _ in range(num_pes):
        while counts[corner] == len(corners[corner]):
            corner = (corner + 1) % len(corners)
        counts[corner] += 1
        corner = (corner + 1) % len(corners)
    return [seats[:count] for seats, count in zip(corners, counts, strict=True)]


def _port_routers(
    shape: MeshShape, free: _Free, cube: CubeSpec
) -> MappingProxyType[Side, tuple[int, ...]]:
    if cube.ucie is None:
        return MappingProxyType({})
    num = cube.ucie.connections
    last_row, last_column = shape.rows - 1, shape.columns - 1

    def row(index: int) -> int:
        return free.rows[spread_evenly(index, num_items=num, num_seats=len(free.rows))]

    def column(index: int) -> int:
        return free.columns[spread_evenly(index, num_items=num, num_seats=len(free.columns))]

    routers = {
        Side.NORTH: tuple(shape.index[0, column(index)] for index in range(num)),
        Side.EAST: tuple(shape.index[row(index), last_column] for index in range(num)),
        Side.SOUTH: tuple(shape.index[last_row, column(index)] for index in range(num)),
        Side.WEST: tuple(shape.index[row(index), 0] for index in range(num)),
    }
    return MappingProxyType(routers)
