"""Coordinates of SIPs, cubes and PEs; ``Grid`` alone turns them into numbers and back."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum

from tilewright.errors import SpecError

HARDWARE_AXES = ("pe", "cube", "sip")


class Side(Enum):
    """A side of a die, and the direction of a packet that leaves by it."""

    NORTH = "N"
    EAST = "E"
    SOUTH = "S"
    WEST = "W"

    @property
    def opposite(self) -> "Side":
        return _OPPOSITE[self]

    @property
    def step(self) -> tuple[int, int]:
        """Columns and rows that one die in this direction is away; rows count to the south."""
        return _STEP[self]


_OPPOSITE = {
    Side.NORTH: Side.SOUTH,
    Side.EAST: Side.WEST,
    Side.SOUTH: Side.NORTH,
    Side.WEST: Side.EAST,
}
_STEP = {Side.NORTH: (0, -1), Side.EAST: (1, 0), Side.SOUTH: (0, 1), Side.WEST: (-1, 0)}


@dataclass(frozen=True, slots=True, order=True)
class SipCoord:
    """One package."""

    sip: int


@dataclass(frozen=True, slots=True, order=True)
class CubeCoord:
    """One compute die of a package."""

    sip: int
    cube: int


@dataclass(frozen=True, slots=True, order=True)
class PeCoord:
    """One PE of a cube."""

    sip: int
    cube: int
    pe: int

    @property
    def cube_coord(self) -> CubeCoord:
        return CubeCoord(self.sip, self.cube)


@dataclass(frozen=True, slots=True)
class Grid:
    """How many there are of each level. Cubes of a SIP count along rows, rows from the north.

    >>> grid = Grid(num_sips=2, columns=4, rows=4, num_pes_per_cube=8)
    >>> grid.num_pes, grid.flat(PeCoord(1, 3, 5)), grid.coord(157)
    (256, 157, PeCoord(sip=1, cube=3, pe=5))
    """

    num_sips: int
    columns: int
    rows: int
    num_pes_per_cube: int

    def __post_init__(self) -> None:
        for field in ("num_sips", "columns", "rows", "num_pes_per_cube"):
            value = getattr(self, field)
            if type(value) is not int or value < 1:
                raise SpecError(f"grid {field}", repr(value), "an int of at least 1", "correct it")

    @property
    def num_cubes_per_sip(self) -> int:
        return self.columns * self.rows

    @property
    def num_cubes(self) -> int:
        return self.num_sips * self.num_cubes_per_sip

    @property
    def num_pes(self) -> int:
        return self.num_cubes * self.num_pes_per_cube

    def has(self, coord: PeCoord) -> bool:
        """Whether there is such a PE."""
        return (
            0 <= coord.sip < self.num_sips
            and 0 <= coord.cube < self.num_cubes_per_sip
            and 0 <= coord.pe < self.num_pes_per_cube
        )

    def flat(self, coord: PeCoord) -> int:
        """The PE's number in the machine."""
        _check("PE", coord.pe, self.num_pes_per_cube)
        return self.flat_cube(coord.cube_coord) * self.num_pes_per_cube + coord.pe

    def coord(self, flat: int) -> PeCoord:
        _check("PE number", flat, self.num_pes)
        cube, pe = divmod(flat, self.num_pes_per_cube)
        sip, cube = divmod(cube, self.num_cubes_per_sip)
        return PeCoord(sip, cube, pe)

    def flat_cube(self, coord: CubeCoord) -> int:
        """The cube's number in the machine."""
        _check("SIP", coord.sip, self.num_sips)
        _check("cube", coord.cube, self.num_cubes_per_sip)
        return coord.sip * self.num_cubes_per_sip + coord.cube

    def cube_coord(self, flat: int) -> CubeCoord:
        _check("cube number", flat, self.num_cubes)
        return CubeCoord(*divmod(flat, self.num_cubes_per_sip))

    def cell(self, coord: CubeCoord) -> tuple[int, int]:
        """Column and row of a cube in its SIP's mesh."""
        _check("cube", coord.cube, self.num_cubes_per_sip)
        row, column = divmod(coord.cube, self.columns)
        return column, row

    def cube_in_cell(self, sip: int, column: int, row: int) -> CubeCoord:
        _check("column of cubes", column, self.columns)
        _check("row of cubes", row, self.rows)
        return CubeCoord(sip, row * self.columns + column)

    def neighbour(self, coord: CubeCoord, side: Side) -> CubeCoord | None:
        """The cube of the same SIP next to this one; None at the edge of the mesh."""
        column, row = self.cell(coord)
        column, row = column + side.step[0], row + side.step[1]
        if 0 <= column < self.columns and 0 <= row < self.rows:
            return self.cube_in_cell(coord.sip, column, row)
        return None

    def cubes(self) -> Iterator[CubeCoord]:
        return (self.cube_coord(flat) for flat in range(self.num_cubes))

    def pes(self) -> Iterator[PeCoord]:
        return (self.coord(flat) for flat in range(self.num_pes))


def _check(what: str, value: int, limit: int) -> None:
    if type(value) is not int or not 0 <= value < limit:
        fix = "name a place of this machine"
        raise SpecError(what, repr(value), f"an int in 0..{limit - 1}", fix)


def place_on_axis(coord: PeCoord, used: Collection[PeCoord], axis: str) -> tuple[int, int]:
    """The place of a PE, and how many there are, among those that a launch uses.

    "pe" counts those of the PE's cube, "cube" the cubes of its SIP, "sip" the SIPs. Where a launch
    uses a whole machine, places are the machine's own numbers.

    >>> used = [PeCoord(0, 0, pe) for pe in (2, 5, 7)]
    >>> place_on_axis(PeCoord(0, 0, 5), used, "pe"), place_on_axis(PeCoord(0, 0, 5), used, "sip")
    ((1, 3), (0, 1))
    """
    if axis == "pe":
        places = {pe.pe for pe in used if (pe.sip, pe.cube) == (coord.sip, coord.cube)}
        here = coord.pe
    elif axis == "cube":
        places = {pe.cube for pe in used if pe.sip == coord.sip}
        here = coord.cube
    else:
        places = {pe.sip for pe in used}
        here = coord.sip
    return sorted(places).index(here), len(places)
