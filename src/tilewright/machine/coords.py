"""Places of a machine as values; ``Grid`` alone turns them into numbers and back."""

from dataclasses import dataclass
from enum import Enum


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
