"""Layout of a mesh of routers with a hole under the memory stack.

Packets go along their row, then along their column. So that neither meets the hole,

- the outermost rows and columns are free of it: it lies inside the mesh, as the spec demands;
- what sends sits in a *free* row, one that the hole does not cross: PEs, M_CPU, connections of the
  east and west port;
- what receives sits in a free column: PEs, SRAM, connections of the north and south port. The M_CPU
  sits on the router nearest to its position, which may be in a column that the hole crosses;
  ``route_mesh`` says how it is reached from the other side.

PEs sit in the four corners NW, NE, SW, SE, dealt in turn, numbered corner by corner, each on its
own router: the column next to the hole first, from the north. More connections than free rows
share routers evenly.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from types import MappingProxyType

from tilewright.machine.coords import Side
from tilewright.machine.layout import (
    DieLayout,
    RouterPlace,
    Wire,
    nearest_router,
    spread_evenly,
)
from tilewright.machine.node import NodeKind
from tilewright.machine.route_mesh import MeshShape, mesh_path
from tilewright.machine.spec import CubeSpec, MeshSpec


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
