"""One cube in use: every link in the colour of its share, one line for each direction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord, PeCoord, Side
from tilewright.machine.node import NodeKind, NodeName, format_name, place_name
from tilewright.report.machine_svg.cube import Cells
from tilewright.report.style import COLOURS, heat_role
from tilewright.report.svg import Box, Svg
from tilewright.units import share_text

MARGIN = 22  # for the ports at the edge
ROUTER, SEAT = 0.2, 0.42  # sides, as shares of a cell
OFFSET = 0.29  # of what sits on a router, from its middle
LANE = 2.5  # between the two directions of a wire
WIRE = 3
UNITS = ("gemm", "vector")


@dataclass(frozen=True)
class _Die:
    """A cube on the picture: where things are, and how much they were in use."""

    box: Box
    cube: CubeCoord
    shares: Mapping[str, float]
    machine: Machine

    @cached_property
    def cells(self) -> Cells:
        layout, inner = self.machine.routes.topology.die.layout, self.box.inset(MARGIN)
        columns, rows = Cells.shape_of(layout)
        return Cells(layout, inner, min(inner.width / columns, inner.height / rows))

    def name(self, part: NodeName) -> str:
        """Of a part that is known but for its cube."""
        return format_name(replace(part, sip=self.cube.sip, cube=self.cube.cube))

    def router_name(self, router: int) -> str:
        return self.name(self.cells.layout.routers[router].name)

    def share(self, name: str) -> float:
        return self.shares.get(name, 0.0)


def draw_die(
    svg: Svg,
    box: Box,
    cube: CubeCoord,
    shares: Mapping[str, float],
    machine: Machine,
) -> None:
    """A cube whose network is a mesh."""
    die = _Die(box, cube, shares, machine)
    svg.box(box, fill=COLOURS["card"], stroke=COLOURS["line"], radius=8)
    for one, other in die.cells.layout.wires:
        names = die.router_name(one), die.router_name(other)
        _draw_both_ways(svg, die, names, die.cells.middle(one), die.cells.middle(other))
    _draw_ports(svg, die)
    for pe, router in enumerate(die.cells.layout.pe_routers):
        _draw_pe(svg, die, PeCoord(cube.sip, cube.cube, pe), router)
    for router in range(len(die.cells.layout.routers)):
        x, y = die.cells.middle(router)
        half = ROUTER * die.cells.size / 2
        tip = die.router_name(router)
        svg.rect(x - half, y - half, 2 * half, 2 * half, fill=COLOURS["pale"], radius=2, tip=tip)


def _draw_both_ways(
    svg: Svg,
    die: _Die,
    names: tuple[str, str],
    one: tuple[float, float],
    other: tuple[float, float],
) -> None:
    (x, y), (far_x, far_y) = one, other
    length = max(abs(far_x - x), abs(far_y - y)) or 1.0
    across = LANE * (far_y - y) / length, LANE * (x - far_x) / length
    for name, sign in ((f"{names[0]} -> {names[1]}", 1), (f"{names[1]} -> {names[0]}", -1)):
        share = die.share(name)
        shift_x, shift_y = sign * across[0], sign * across[1]
        points = (x + shift_x, y + shift_y), (far_x + shift_x, far_y + shift_y)
        stroke = COLOURS[heat_role(share)]
        svg.line(points, stroke=stroke, width=WIRE, tip=f"{name}: {share_text(share)}")


def _draw_ports(svg: Svg, die: _Die) -> None:
    """From a router to the edge; connections that share a router lie beside each other."""
    for side, index, router, _, place in die.cells.ports():
        offset = place * 3 * LANE
        x, y = die.cells.middle(router)
        if side in (Side.NORTH, Side.SOUTH):
            edge = x + offset, die.box.y if side is Side.NORTH else die.box.bottom
            start = x + offset, y
        else:
            edge = die.box.x if side is Side.WEST else die.box.right, y + offset
            start = x, y + offset
        port = die.name(NodeName(NodeKind.CONNECTION, side=side.value, index=index))
        _draw_both_ways(svg, die, (die.router_name(router), port), start, edge)


def _draw_pe(svg: Svg, die: _Die, pe: PeCoord, router: int) -> None:
    """The PE above its router to the left, its slice of the memory below to the right."""
    x, y = die.cells.middle(router)
    offset, router_name = OFFSET * die.cells.size, die.router_name(router)
    dma = die.name(NodeName(NodeKind.PE_DMA, pe=pe.pe))
    controller = die.name(NodeName(NodeKind.HBM_CTRL, pe=pe.pe))
    above, below = (x - offset, y - offset), (x + offset, y + offset)
    _draw_both_ways(svg, die, (dma, router_name), above, (x, y))
    _draw_both_ways(svg, die, (controller, router_name), below, (x, y))
    used = max(die.share(f"{place_name(pe)}.{unit}") for unit in UNITS)
    tip = f"{place_name(pe)}: its busiest unit {share_text(used)}"
    _draw_seat(svg, die, above, f"PE{pe.pe}", used, tip)
    used = die.share(controller)
    tip = f"{controller}: the slice of PE {pe.pe} {share_text(used)}"
    _draw_seat(svg, die, below, "HBM", used, tip)


def _draw_seat(
    svg: Svg,
    die: _Die,
    middle: tuple[float, float],
    name: str,
    share: float,
    tip: str,
) -> None:
    """Letters stand on the card's ground; the share is the band below them."""
    size = SEAT * die.cells.size
    left, top = middle[0] - size / 2, middle[1] - size / 2
    svg.rect(
        left, top, size, size,
        fill=COLOURS["ground"], stroke=COLOURS["line"], radius=2, tip=tip,
    )  # fmt: skip
    band = 0.36 * size
    svg.rect(left, top + size - band, size, band, fill=COLOURS[heat_role(share)], radius=2, tip=tip)
    y = top + (size - band) / 2
    svg.text(middle[0], y, name, size=0.38 * size, fill=COLOURS["ink"])
