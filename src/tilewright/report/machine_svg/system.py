"""The first panel: the host, the SIPs, and what joins them."""

from collections.abc import Mapping

from tilewright.machine.build import Machine
from tilewright.machine.coords import SipCoord
from tilewright.machine.node import place_name
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.topology.fabric import FabricShape
from tilewright.report.format import parallel_rate_text, pcie_text, pieces_text, rate_text
from tilewright.report.machine_svg.style import (
    GREY,
    WIRE,
    BlockKind,
    draw_block,
    draw_label,
    draw_lines,
    draw_tag,
)
from tilewright.report.svg import Box, Svg, grid_of_boxes
from tilewright.units import count_text, format_bytes, format_ps

MOST_COLUMNS, MOST_ROWS = 8, 5  # of SIPs that are drawn
SIP_WIDTH, SIP_HEIGHT = 190, 150  # at most
FABRIC_STROKE = BlockKind.SWITCH.stroke

Places = Mapping[tuple[int, int], Box]
"""SIPs that are drawn, by column and row."""


def draw_system(svg: Svg, box: Box, machine: Machine) -> None:
    shape, num_sips = machine.routes.topology.fabric.shape, machine.grid.num_sips
    columns, rows = (num_sips, 1) if shape is None else (shape.columns, shape.rows)
    area, low = box.split_bottom(32)
    host = Box(box.middle[0] - 60, box.y, 120, 32)
    has_switch = shape is None and num_sips > 1
    below = 44 if has_switch else 10
    area = Box(area.x, host.bottom + 44, area.width, area.height - 76 - below)
    sips = _places(area, min(columns, MOST_COLUMNS), min(rows, MOST_ROWS), shape)
    _draw_host(svg, box, host, area, sips, machine)
    if has_switch:
        _draw_switch(svg, box, Box(box.middle[0] - 60, low.y, 120, 32), sips, machine)
    elif shape is not None:
        _draw_neighbours(svg, sips, shape, machine)
    for (column, row), sip in sips.items():
        _draw_sip(svg, sip, row * columns + column, machine)
    width = box.width / 2 - 72 if has_switch else box.width
    draw_label(svg, Box(low.x, low.y, width, 32), _notes(machine, len(sips)), fill=GREY)


def _places(area: Box, columns: int, rows: int, shape: FabricShape | None) -> Places:
    """SIPs with links of their own leave room for a rate between them."""
    cell_width, cell_height = area.width / columns, area.height / rows
    width = min(SIP_WIDTH, max(0.4 * cell_width, cell_width - (64 if shape else 16)))
    height = min(SIP_HEIGHT, cell_height - (28 if shape else 2))
    return grid_of_boxes(area, columns, rows, width, height)


def _draw_host(svg: Svg, box: Box, host: Box, area: Box, sips: Places, machine: Machine) -> None:
    """A wire to each SIP; to several rows of them one wire, to a frame around all."""
    pcie = machine.spec.host.pcie
    rate = rate_text(pcie_bytes_per_us(pcie, flit_bytes=machine.spec.flit_bytes))
    middle, stroke = host.middle[0], BlockKind.HOST.stroke
    if any(row > 0 for _, row in sips):
        svg.box(area, fill="none", stroke=WIRE, dash="4 4")
        svg.line(((middle, host.bottom), (middle, area.y)), stroke=stroke)
        draw_tag(svg, middle, host.bottom + 22, rate)
    else:
        bus = host.bottom + 14
        svg.line(((middle, host.bottom), (middle, bus)), stroke=stroke)
        for sip in sips.values():
            x = sip.middle[0]
            svg.line(((middle, bus), (x, bus), (x, sip.y)), stroke=stroke)
            draw_tag(svg, x, bus + 16, rate, room=area.width / len(sips))
    draw_block(svg, host, BlockKind.HOST, ("host",), size=13)
    target = "each SIP" if machine.grid.num_sips > 1 else "the SIP"
    lines = (f"{pcie_text(pcie)} to {target},", f"endpoint {format_ps(pcie.endpoint_ps)}")
    side = Box(host.right + 12, host.y + 1, box.right - host.right - 12, 32)
    draw_label(svg, side, lines, fill=GREY)


def _draw_switch(svg: Svg, box: Box, switch: Box, sips: Places, machine: Machine) -> None:
    fabric = machine.spec.fabric
    rate = parallel_rate_text(fabric.links, fabric.bytes_per_us)
    bus, middle = switch.y - 12, switch.middle[0]
    svg.line(((middle, bus), (middle, switch.y)), stroke=FABRIC_STROKE)
    for sip in sips.values():
        x = sip.middle[0]
        svg.line(((x, sip.bottom), (x, bus), (middle, bus)), stroke=FABRIC_STROKE)
        draw_tag(svg, x, (sip.bottom + bus) / 2, rate, room=box.width / len(sips))
    lines = ("switch", format_ps(fabric.switch_ps))
    draw_block(svg, switch, BlockKind.SWITCH, lines, size=12)
    lines = (
        f"each of {count_text(fabric.links, 'link')} a SIP:",
        f"{rate_text(fabric.bytes_per_us)} each way, {format_ps(fabric.latency_ps)}",
    )
    side = Box(switch.right + 12, switch.y, box.right - switch.right - 12, 32)
    draw_label(svg, side, lines, fill=GREY)


def _draw_neighbours(svg: Svg, sips: Places, shape: FabricShape, machine: Machine) -> None:
    rate = parallel_rate_text(shape.links_per_side, machine.spec.fabric.bytes_per_us)
    columns = 1 + max(column for column, _ in sips)
    rows = 1 + max(row for _, row in sips)
    for (column, row), sip in sips.items():
        east, south = sips.get((column + 1, row)), sips.get((column, row + 1))
        x, y = sip.middle
        if east is not None:
            svg.line(((sip.right, y), (east.x, y)), stroke=FABRIC_STROKE, width=2)
        if south is not None:
            svg.line(((x, sip.bottom), (x, south.y)), stroke=FABRIC_STROKE, width=2)
    if shape.wraps and (columns, rows) == (shape.columns, shape.rows):
        _draw_wraps(svg, sips, columns, rows)
    for (column, row), sip in sips.items():
        east = sips.get((column + 1, row))
        if east is not None:
            middle = (sip.right + east.x) / 2
            draw_tag(svg, middle, sip.middle[1], rate, room=east.x - sip.right)


def _draw_wraps(svg: Svg, sips: Places, columns: int, rows: int) -> None:
    """The wires that join the ends of a row or column, around its SIPs."""
    for row in range(rows if columns > 1 else 0):
        first, last = sips[0, row], sips[columns - 1, row]
        y, below = first.middle[1] + 10, first.bottom + 8
        left, right = first.x - 10, last.right + 10
        points = ((last.right, y), (right, y), (right, below), (left, below), (left, y))
        svg.line((*points, (first.x, y)), stroke=FABRIC_STROKE, dash="5 3")
    for column in range(columns if rows > 1 else 0):
        first, last = sips[column, 0], sips[column, rows - 1]
        x, side = first.middle[0] + 10, first.right + 5
        top, bottom = first.y - 4, last.bottom + 4
        points = ((x, last.bottom), (x, bottom), (side, bottom), (side, top), (x, top))
        svg.line((*points, (x, first.y)), stroke=FABRIC_STROKE, dash="5 3")


def _draw_sip(svg: Svg, box: Box, number: int, machine: Machine) -> None:
    """A package with its IO chiplet at the north side and its cubes."""
    sip, tip = machine.spec.sip, place_name(SipCoord(number))
    svg.box(box, fill="#ffffff", stroke=GREY, radius=5, tip=tip)
    draw_lines(svg, Box(box.x, box.y + 1, box.width, 16), (f"SIP {number}",), size=12)
    inner = Box(box.x + 6, box.y + 18, box.width - 12, box.height - 24)
    if inner.height < 12:
        return
    if sip.io is not None:
        draw_block(svg, Box(inner.x, inner.y, inner.width, 6), BlockKind.IO, tip=f"{tip}.io0")
        inner = Box(inner.x, inner.y + 9, inner.width, inner.height - 9)
    width, height = inner.width / sip.columns, inner.height / sip.rows
    if min(width, height) < 4:
        draw_block(svg, inner, BlockKind.CUBE, tip=pieces_text(sip.columns, sip.rows, "cube"))
        return
    for cube in range(sip.num_cubes):
        row, column = divmod(cube, sip.columns)
        place = Box(inner.x + column * width, inner.y + row * height, width, height)
        draw_block(svg, place.inset(1), BlockKind.CUBE, tip=f"{tip}.cube{cube}")


def _notes(machine: Machine, num_drawn: int) -> list[str]:
    spec, grid, fabric = machine.spec, machine.grid, machine.spec.fabric
    hbm_bytes = spec.cube.hbm.capacity_bytes * grid.num_cubes_per_sip
    pes = count_text(grid.num_cubes_per_sip * grid.num_pes_per_cube, "PE")
    notes = [f"each SIP: {pieces_text(spec.sip.columns, spec.sip.rows, 'cube')},"]
    notes.append(f"{pes}, {format_bytes(hbm_bytes)} of HBM")
    if machine.routes.topology.fabric.shape is not None:
        rate = rate_text(fabric.bytes_per_us)
        notes = [
            " ".join(notes),
            f"{fabric.kind}: {rate} each way and {format_ps(fabric.latency_ps)} a link",
        ]
    if num_drawn < grid.num_sips:
        notes[-1] = f"{num_drawn} of {grid.num_sips} SIPs are drawn"
    return notes
