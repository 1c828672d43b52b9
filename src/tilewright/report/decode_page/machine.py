"""The machine in use: a SIP with its memories and ports, and its busiest cube with all links."""

from collections.abc import Mapping, Sequence

from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord, Side, SipCoord
from tilewright.machine.node import LinkKind, NodeKind, place_name
from tilewright.machine.spec import MeshSpec
from tilewright.report.decode_page.die import draw_die
from tilewright.report.decode_page.model import ShownUsage
from tilewright.report.style import COLOURS, HEAT_LEVELS, heat_role
from tilewright.report.svg import Box, Svg, row_of_boxes
from tilewright.units import format_bytes, share_text

WIDTH, HEIGHT = 960, 520
PANEL_TOP, PANEL = 56, 408  # a panel is a square
LEFT_AT, RIGHT_AT = 24, 528
WIRE_WIDTH, WIRE_GAP = 4, 7  # of a port, and between its two directions
LEGEND_AT = 492


def draw_usage(usage: ShownUsage, machine: Machine) -> str:
    """The text of an SVG; equal usages give equal bytes."""
    svg = Svg(WIDTH, HEIGHT, f"The machine {machine.spec.name} in use: {usage.label}")
    svg.rect(0, 0, WIDTH, HEIGHT, fill=COLOURS["ground"], radius=8)
    cube = busiest_cube(usage.shares, machine)
    sip = SipCoord(cube.sip)
    _draw_head(svg, LEFT_AT, place_name(sip), "slices of HBM in cubes, ports between them")
    _draw_sip(svg, Box(LEFT_AT, PANEL_TOP, PANEL, PANEL), sip, usage.shares, machine)
    if isinstance(machine.spec.cube.noc, MeshSpec):
        _draw_head(svg, RIGHT_AT, place_name(cube), "its routers, PEs, slices and links")
        box = Box(RIGHT_AT, PANEL_TOP, PANEL, PANEL)
        draw_die(svg, box, cube, usage.shares, machine)
    _draw_legend(svg)
    return svg.render()


def slice_shares(shares: Mapping[str, float], machine: Machine) -> dict[CubeCoord, list[float]]:
    """How much the memories of each cube were in use, in the order of their PEs."""
    found: dict[CubeCoord, list[float]] = {cube: [] for cube in machine.grid.cubes()}
    for pe in machine.grid.pes():
        node = machine.nodes[machine.node_of(NodeKind.HBM_CTRL, pe)]
        found[pe.cube_coord].append(shares.get(node.name, 0.0))
    return found


def busiest_cube(shares: Mapping[str, float], machine: Machine) -> CubeCoord:
    """By its memories; the first of equal ones."""
    by_cube = slice_shares(shares, machine)
    return max(by_cube, key=lambda cube: (sum(by_cube[cube]), -machine.grid.flat_cube(cube)))


def _draw_head(svg: Svg, x: float, name: str, what: str) -> None:
    svg.text(x, 20, name, size=14, anchor="start", bold=True, fill=COLOURS["ink"])
    svg.text(x, 39, what, size=12, anchor="start", fill=COLOURS["pale"])


def _draw_sip(
    svg: Svg,
    box: Box,
    sip: SipCoord,
    shares: Mapping[str, float],
    machine: Machine,
) -> None:
    grid, by_cube = machine.grid, slice_shares(shares, machine)
    places = _places(box, grid.columns, grid.rows)
    ports = _port_shares(shares, machine)
    for (column, row), place in places.items():
        cube = grid.cube_in_cell(sip.sip, column, row)
        for side, step in ((Side.EAST, (1, 0)), (Side.SOUTH, (0, 1))):
            other = places.get((column + step[0], row + step[1]))
            if other is not None:
                neighbour = grid.cube_in_cell(sip.sip, column + step[0], row + step[1])
                ways = ports.get((cube, side), 0.0), ports.get((neighbour, side.opposite), 0.0)
                _draw_port(svg, place, other, (cube, neighbour), ways)
        _draw_cube(svg, place, cube, by_cube[cube], machine)


def _places(box: Box, columns: int, rows: int) -> dict[tuple[int, int], Box]:
    width, height = box.width / columns, box.height / rows
    return {
        (column, row): Box(
            box.x + column * width, box.y + row * height, 0.78 * width, 0.78 * height
        )
        for row in range(rows)
        for column in range(columns)
    }


def _port_shares(
    shares: Mapping[str, float], machine: Machine
) -> dict[tuple[CubeCoord, Side], float]:
    """Of the busiest connection that leaves a cube by a side."""
    crossings = machine.routes.topology.crossings
    return {
        (machine.grid.cube_coord(cube), side): max(
            (shares.get(machine.link_name(link), 0.0) for link in links), default=0.0
        )
        for (cube, side), links in crossings.items()
        if all(machine.links[link].kind is LinkKind.DIE_TO_DIE for link in links)
    }


def _draw_port(
    svg: Svg,
    one: Box,
    other: Box,
    cubes: tuple[CubeCoord, CubeCoord],
    ways: tuple[float, float],
) -> None:
    """A line for each direction, the one from the first cube above or to the left."""
    names = [place_name(cube) for cube in cubes]
    for place, share in enumerate(ways):
        shift = (place - 0.5) * WIRE_GAP
        if one.y == other.y:
            y = one.middle[1] + shift
            points = ((one.right, y), (other.x, y))
        else:
            x = one.middle[0] + shift
            points = ((x, one.bottom), (x, other.y))
        start, end = names if place == 0 else reversed(names)
        tip = f"{start} to {end}: busiest connection {share_text(share)}"
        svg.line(points, stroke=COLOURS[heat_role(share)], width=WIRE_WIDTH, tip=tip)


def _draw_cube(
    svg: Svg,
    box: Box,
    cube: CubeCoord,
    slices: Sequence[float],
    machine: Machine,
) -> None:
    used = sum(slices) / len(slices)
    name = place_name(cube)
    each = format_bytes(machine.spec.cube.hbm.capacity_bytes // len(slices))
    tip = f"{name}: slices of HBM ({each} each) in use {share_text(used)} of the time"
    svg.box(box, fill=COLOURS["card"], stroke=COLOURS["line"], radius=6, tip=tip)
    svg.text(box.middle[0], box.y + 13, f"cube {cube.cube}", size=11, fill=COLOURS["ink"])
    svg.text(box.middle[0], box.bottom - 12, share_text(used), size=11, fill=COLOURS["ink"])
    strip = Box(box.x + 6, box.y + 24, box.width - 12, box.height - 48)
    for number, (tile, share) in enumerate(
        zip(row_of_boxes(strip, len(slices), 1), slices, strict=True)
    ):
        tip = f"{name}, slice of PE {number}: {share_text(share)}"
        svg.box(tile, fill=COLOURS[heat_role(share)], tip=tip)


def _draw_legend(svg: Svg) -> None:
    svg.text(LEFT_AT, LEGEND_AT, "in use:", size=12, anchor="start", fill=COLOURS["pale"])
    x = LEFT_AT + 54.0
    for level in range(HEAT_LEVELS + 1):
        share = level / HEAT_LEVELS
        svg.rect(x, LEGEND_AT - 7, 26, 14, fill=COLOURS[heat_role(share)], radius=3)
        text = "never" if level == 0 else f"to {share_text(share)}"
        svg.text(x + 34, LEGEND_AT, text, size=12, anchor="start", fill=COLOURS["ink"])
        x += 112
