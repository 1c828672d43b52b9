"""The turn rule between SIPs: along the row of SIPs, then along the column, with datelines.

In a ring or torus a packet takes the shorter way of each dimension. Of two equal ways, even spreads
go east or south and odd ones west or north. On the wire that wraps around, and behind it in the
same dimension, a packet is at level 1: no packet wraps twice, so neither level closes a circle.
"""

from dataclasses import dataclass

from tilewright.errors import SpecError
from tilewright.machine.coords import Side
from tilewright.machine.spec import FabricSpec


@dataclass(frozen=True, slots=True)
class FabricShape:
    """SIPs in rows and columns; ``wraps``: the ends of each are joined too."""

    columns: int
    rows: int
    wraps: bool
    links_per_side: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """Directions in which a SIP has links; a dimension of one SIP has none."""
        row = (Side.EAST, Side.WEST) if self.columns > 1 else ()
        column = (Side.SOUTH, Side.NORTH) if self.rows > 1 else ()
        return row + column

    def port(self, side: Side, index: int) -> int:
        """The SIP's port for a link of a direction: links are dealt over the directions."""
        return index * len(self.sides) + self.sides.index(side)

    def neighbour(self, sip: int, side: Side) -> int | None:
        row, column = divmod(sip, self.columns)
        column, row = column + side.step[0], row + side.step[1]
        if self.wraps:
            return row % self.rows * self.columns + column % self.columns
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return row * self.columns + column if inside else None

    @property
    def period(self) -> int:
        """Spreads that differ by this use the same links."""
        return 2 * self.links_per_side


@dataclass(frozen=True, slots=True)
class FabricHop:
    """One wire between two SIPs: whose, in which direction, which of the parallel ones."""

    sip: int
    side: Side
    index: int
    level: int


def plan_fabric_shape(fabric: FabricSpec, num_sips: int) -> FabricShape:
    """Rows and columns of SIPs; a switch has none."""
    columns = num_sips
    if fabric.kind in ("torus", "mesh") and fabric.columns is not None:
        columns = fabric.columns
    shape = FabricShape(columns, num_sips // columns, fabric.kind != "mesh", 0)
    num_sides = len(shape.sides)
    if fabric.links < num_sides:
        found = f"{fabric.links} links a SIP"
        expected = f"at least {num_sides}, one for each direction of the {fabric.kind}"
        raise SpecError("fabric.links", found, expected, "add links or choose another fabric.kind")
    return FabricShape(shape.columns, shape.rows, shape.wraps, fabric.links // max(1, num_sides))


def fabric_hops(shape: FabricShape, source: int, target: int, spread: int) -> tuple[FabricHop, ...]:
    """Wires from SIP to SIP; parallel links are chosen by ``spread``."""
    source_row, source_column = divmod(source, shape.columns)
    target_row, target_column = divmod(target, shape.columns)
    at = source
    hops: list[FabricHop] = []
    for sides, first, last, size in (
        ((Side.EAST, Side.WEST), source_column, target_column, shape.columns),
        ((Side.SOUTH, Side.NORTH), source_row, target_row, shape.rows),
    ):
        side, num_steps, index = _choose(shape, sides, (last - first) % size, last - first, spread)
        level = 0
        for _ in range(num_steps):
            following = _following(shape, at, side)
            if _wraps(at, following, side):
                level = 1
            hops.append(FabricHop(at, side, index, level))
            at = following
    return tuple(hops)


def _choose(
    shape: FabricShape, sides: tuple[Side, Side], ahead: int, distance: int, spread: int
) -> tuple[Side, int, int]:
    """Direction, number of steps and parallel link along one dimension."""
    size = shape.columns if sides[0] is Side.EAST else shape.rows
    up, down = sides
    index = spread % shape.links_per_side
    if not shape.wraps:
        return (up if distance >= 0 else down), abs(distance), index
    if 2 * ahead == size:
        return sides[spread % 2], ahead, spread // 2 % shape.links_per_side
    if 2 * ahead < size:
        return up, ahead, index
    return down, size - ahead, index


def _following(shape: FabricShape, sip: int, side: Side) -> int:
    following = shape.neighbour(sip, side)
    if following is None:
        fix = "route inside the mesh"
        raise SpecError("fabric", f"no SIP {side.name.lower()} of {sip}", "a neighbour", fix)
    return following


def _wraps(sip: int, following: int, side: Side) -> bool:
    """SIPs count up to the east and the south; going that way to a lower number is a wrap."""
    return following < sip if side in (Side.EAST, Side.SOUTH) else following > sip
