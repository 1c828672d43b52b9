"""The turn rule of a mesh with a hole: along the row, then along the column.

One target, the M_CPU, may sit in a column that the hole crosses. From beyond the hole a packet
then uses the nearest column that is free, and goes along the target's row at the end. All such
packets turn into one row, and only when they move towards one side of the hole; so no cycle of
waiting arises (``dependency`` proves it for every machine).
"""

from dataclasses import dataclass, field

from tilewright.machine.layout import Step

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
