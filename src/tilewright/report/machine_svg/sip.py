"""The second panel: one SIP with its IO chiplet, its mesh of cubes, and the ports between them."""

from tilewright.machine.build import Machine
from tilewright.machine.coords import CubeCoord
from tilewright.machine.node import NodeKind, NodeName, format_name, place_name
from tilewright.machine.spec import IoChipletSpec, UcieSpec
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.report.format import parallel_rate_text, pcie_text, pieces_text, rate_text
from tilewright.report.machine_svg.style import (
    GREY,
    BlockKind,
    draw_block,
    draw_label,
    draw_lines,
    draw_tag,
)
from tilewright.report.svg import Box, Svg, grid_of_boxes, row_of_boxes
from tilewright.units import count_text, format_bytes, format_ps

MOST_COLUMNS, MOST_ROWS = 8, 6  # of cubes that are drawn
CUBE_WIDTH, CUBE_HEIGHT = 140, 100  # at most
PORT_STROKE = BlockKind.PORT.stroke


def draw_sip(svg: Svg, box: Box, machine: Machine) -> None:
    spec = machine.spec
    area, low = box.split_bottom(18)
    top = Box(box.x, box.y, box.width, 62)
    columns, rows = min(spec.sip.columns, MOST_COLUMNS), min(spec.sip.rows, MOST_ROWS)
    area = Box(area.x, top.bottom + 12, area.width, area.height - 78)
    cubes = _places(area, columns, rows)
    if spec.cube.ucie is not None:
        _draw_ports(svg, cubes, top, spec.cube.ucie, has_io=spec.sip.io is not None)
    if spec.sip.io is not None:
        _draw_io(svg, top, spec.sip.io, machine)
    else:
        _draw_host_link(svg, top, cubes[0, 0], machine)
    for (column, row), cube in cubes.items():
        number = row * spec.sip.columns + column
        pes, hbm = count_text(spec.cube.pes, "PE"), format_bytes(spec.cube.hbm.capacity_bytes)
        lines = (f"cube {number}", pes, hbm)
        draw_block(svg, cube, BlockKind.CUBE, lines, tip=place_name(CubeCoord(0, number)))
    draw_label(svg, low, [_note(machine, len(cubes))], fill=GREY)


def _places(area: Box, columns: int, rows: int) -> dict[tuple[int, int], Box]:
    cell_width, cell_height = area.width / columns, area.height / rows
    width = min(CUBE_WIDTH, max(0.45 * cell_width, cell_width - 76))
    height = min(CUBE_HEIGHT, cell_height - 18)
    return grid_of_boxes(area, columns, rows, width, height)


def _draw_ports(
    svg: Svg, cubes: dict[tuple[int, int], Box], io: Box, ucie: UcieSpec, *, has_io: bool
) -> None:
    rate = parallel_rate_text(ucie.connections, ucie.bytes_per_us)
    for (column, row), cube in cubes.items():
        east, south = cubes.get((column + 1, row)), cubes.get((column, row + 1))
        x, y = cube.middle
        if east is not None:
            _draw_crossing(svg, (cube.right, y), (east.x, y))
            middle = (cube.right + east.x) / 2
            draw_tag(svg, middle, y, rate, room=east.x - cube.right - 12)
        if south is not None:
            _draw_crossing(svg, (x, cube.bottom), (x, south.y))
        if row == 0 and has_io:
            _draw_crossing(svg, (x, io.bottom), (x, cube.y))


def _draw_crossing(svg: Svg, start: tuple[float, float], end: tuple[float, float]) -> None:
    """A wire with a port at each end."""
    svg.line((start, end), stroke=PORT_STROKE, width=2)
    (left, top), (right, bottom) = start, end
    if top == bottom:
        ports = Box(left, top - 7, 5, 14), Box(right - 5, top - 7, 5, 14)
    else:
        ports = Box(left - 7, top, 14, 5), Box(left - 7, bottom - 5, 14, 5)
    for port in ports:
        draw_block(svg, port, BlockKind.PORT, tip="UCIe port")


def _draw_io(svg: Svg, box: Box, io: IoChipletSpec, machine: Machine) -> None:
    spec = machine.spec
    draw_block(
        svg,
        box,
        BlockKind.IO,
        tip=format_name(NodeName(NodeKind.IO_NOC, sip=0, io=0)).rpartition(".")[0],
    )
    draw_lines(svg, Box(box.x, box.y, box.width, 16), ("IO chiplet",), size=12)
    rate = rate_text(pcie_bytes_per_us(spec.host.pcie, flit_bytes=spec.flit_bytes))
    ucie = spec.cube.ucie
    ports = f"{spec.sip.columns} x {ucie.connections} to cubes" if ucie else ""
    blocks = [
        (BlockKind.MOVER, (pcie_text(spec.host.pcie), rate)),
        (BlockKind.PROCESSOR, ("IO CPU", f"{format_ps(spec.sip.io_cpu.command_ps)} a command")),
        (BlockKind.SWITCH, ("crossbar", format_ps(io.noc_ps))),
        (BlockKind.PORT, ("UCIe", ports)),
    ]
    if spec.sip.count > 1:
        links = parallel_rate_text(spec.fabric.links, spec.fabric.bytes_per_us)
        blocks.append((BlockKind.SWITCH, ("SIP links", links)))
    inner = Box(box.x + 8, box.y + 18, box.width - 16, box.height - 24)
    for place, (kind, lines) in zip(row_of_boxes(inner, len(blocks), 8), blocks, strict=True):
        draw_block(svg, place, kind, lines)


def _draw_host_link(svg: Svg, box: Box, cube: Box, machine: Machine) -> None:
    """Without an IO chiplet the host's link leads to the die itself."""
    pcie = machine.spec.host.pcie
    rate = rate_text(pcie_bytes_per_us(pcie, flit_bytes=machine.spec.flit_bytes))
    host = Box(box.middle[0] - 80, box.y, 160, 40)
    middle = host.middle[0]
    svg.line(((middle, host.bottom), (middle, cube.y)), stroke=BlockKind.HOST.stroke)
    draw_block(svg, host, BlockKind.MOVER, (pcie_text(pcie), f"{rate} from the host"))


def _note(machine: Machine, num_drawn: int) -> str:
    spec, ucie = machine.spec, machine.spec.cube.ucie
    if num_drawn < spec.sip.num_cubes:
        return f"{num_drawn} of {pieces_text(spec.sip.columns, spec.sip.rows, 'cube')} are drawn"
    if ucie is None:
        return "the die has no UCIe ports"
    rate = parallel_rate_text(ucie.connections, ucie.bytes_per_us)
    return f"UCIe port: {rate} each way, {format_ps(ucie.side_ps)} on each side of a crossing"
