"""A die with a mesh: a cell for each router, what sits on it in the corners of the cell."""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.machine.build import Machine
from tilewright.machine.coords import Side
from tilewright.machine.spec import CrossbarSpec, CubeSpec, MeshSpec
from tilewright.machine.topology.layout import DieLayout
from tilewright.machine.totals import slice_bytes_per_us, totals_of
from tilewright.report.format import flops_text, rate_text
from tilewright.report.machine_svg.cube_round import draw_round_die
from tilewright.report.machine_svg.style import (
    GREY,
    M_CPU_TILE,
    PCIE_TILE,
    SRAM_TILE,
    WIRE,
    BlockKind,
    Tile,
    draw_block,
    draw_hbm,
    draw_label,
    draw_lines,
    draw_tile,
    tiles_of_pe,
)
from tilewright.report.svg import Box, Svg, row_of_boxes
from tilewright.units import count_text, format_bytes, format_ps

PORT_DEPTH = 8
MARGIN = 12  # of a die, for its ports
LEAST_CELL = 5  # below that a mesh is only named


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the routers of a mesh are: each in the middle of a cell, as on the die."""

    layout: DieLayout
    place: Box
    size: float

    @property
    def half(self) -> float:
        """Of a router."""
        return 0.14 * self.size

    def middle(self, router: int) -> tuple[float, float]:
        place = self.layout.routers[router]
        column, row = place.name.column or 0, place.name.row or 0
        return self.place.x + (column + 0.5) * self.size, self.place.y + (row + 0.5) * self.size

    @staticmethod
    def shape_of(layout: DieLayout) -> tuple[int, int]:
        """Return the columns and rows of a mesh."""
        columns = 1 + max(place.name.column or 0 for place in layout.routers)
        return columns, 1 + max(place.name.row or 0 for place in layout.routers)

    def ports(self) -> Iterator[tuple[Side, int, int, int, float]]:
        """Yield side, number and router of each connection; those of one router are apart.

        Then follow how many share the router, and the place among them, from the middle.
        """
        for side, routers in self.layout.port_routers.items():
            for index, router in enumerate(routers):
                sharing = [other for other in range(len(routers)) if routers[other] == router]
                place = sharing.index(index) - (len(sharing) - 1) / 2
                yield side, index, router, len(sharing), place

    def corner(self, router: int, step: tuple[int, int]) -> Box:
        """The part of a cell beside its wires, above or below its router."""
        x, y = self.middle(router)
        pad = min(1.0, self.size / 20)
        width, height = self.size / 2 - 2 * pad, self.size / 2 - self.half - 3 * pad
        left = x + 1.5 * pad if step[0] > 0 else x - 1.5 * pad - width
        top = y + self.half + pad if step[1] > 0 else y - self.half - pad - height
        return Box(left, top, width, height)


def draw_mesh_die(svg: Svg, die: Box, machine: Machine) -> None:
    layout = machine.routes.topology.die.layout
    columns, rows = Cells.shape_of(layout)
    inner = die.inset(MARGIN)
    size = min(inner.width / columns, inner.height / rows)
    if size < LEAST_CELL:
        lines = (count_text(len(layout.routers), "router"), "too many to draw")
        draw_lines(svg, inner, lines, size=13)
        return
    x = inner.middle[0] - columns * size / 2
    y = inner.middle[1] - rows * size / 2
    cells = Cells(layout, Box(x, y, columns * size, rows * size), size)
    _draw_hole(svg, cells, columns, rows, machine)
    _draw_ports(svg, cells, die)
    for one, other in layout.wires:
        points = cells.middle(one), cells.middle(other)
        svg.line(points, stroke=WIRE, width=min(2.0, size / 8))
    _draw_seats(svg, cells, machine)
    for router, place in enumerate(layout.routers):
        x, y = cells.middle(router)
        tip = f"r{place.name.row}c{place.name.column}"
        box = Box(x - cells.half, y - cells.half, 2 * cells.half, 2 * cells.half)
        draw_block(svg, box, BlockKind.ROUTER, tip=tip)


def _draw_hole(svg: Svg, cells: Cells, columns: int, rows: int, machine: Machine) -> None:
    there = {(place.name.row, place.name.column) for place in cells.layout.routers}
    missing = [
        (row, column)
        for row in range(rows)
        for column in range(columns)
        if (row, column) not in there
    ]
    if not missing:
        return
    (row, column), (last_row, last_column) = missing[0], missing[-1]
    size = cells.size
    hole = Box(
        cells.place.x + column * size,
        cells.place.y + row * size,
        (last_column - column + 1) * size,
        (last_row - row + 1) * size,
    )
    draw_hbm(svg, hole.inset(min(4, size / 8)), machine)


def _draw_ports(svg: Svg, cells: Cells, die: Box) -> None:
    stroke = BlockKind.PORT.stroke
    for side, index, router, num_sharing, place in cells.ports():
        width = min(12.0, 2 * cells.half / num_sharing)
        offset = place * width
        x, y = cells.middle(router)
        if side in (Side.NORTH, Side.SOUTH):
            edge = die.y if side is Side.NORTH else die.bottom - PORT_DEPTH
            port = Box(x + offset - width / 2, edge, width, PORT_DEPTH)
            svg.line(((x + offset, y), port.middle), stroke=stroke)
        else:
            edge = die.x if side is Side.WEST else die.right - PORT_DEPTH
            port = Box(edge, y + offset - width / 2, PORT_DEPTH, width)
            svg.line(((x, y + offset), port.middle), stroke=stroke)
        draw_block(svg, port, BlockKind.PORT, tip=f"ucie-{side.value}.conn{index}")


def _draw_seats(svg: Svg, cells: Cells, machine: Machine) -> None:
    layout = cells.layout
    for pe, router in enumerate(layout.pe_routers):
        above, below = tiles_of_pe(pe)
        _draw_seat(svg, cells, router, cells.corner(router, (-1, -1)), above)
        _draw_seat(svg, cells, router, cells.corner(router, (1, 1)), below)
    corner = cells.corner(layout.sram_router, (-1, 1))
    _draw_seat(svg, cells, layout.sram_router, corner, SRAM_TILE)
    tiles = [M_CPU_TILE]
    if machine.spec.sip.io is None:
        tiles += [Tile(BlockKind.PROCESSOR, ("IO",), "io_cpu"), PCIE_TILE]
    boxes = row_of_boxes(cells.corner(layout.m_cpu_router, (1, -1)), len(tiles), 0)
    for box, tile in zip(boxes, tiles, strict=True):
        _draw_seat(svg, cells, layout.m_cpu_router, box, tile)


def _draw_seat(svg: Svg, cells: Cells, router: int, box: Box, tile: Tile) -> None:
    svg.line((box.middle, cells.middle(router)), stroke=tile.kind.stroke)
    draw_tile(svg, box, tile)


KEY_WIDTH = 166
ENTRY_HEIGHT = 42

Entry = tuple[BlockKind, str, str]


def draw_cube(svg: Svg, box: Box, machine: Machine) -> None:
    side = min(box.height, box.width - KEY_WIDTH - 16)
    die = Box(box.x, box.y, side, side)
    svg.rect(die.x, die.y, side, side, fill="#ffffff", stroke=BlockKind.CUBE.stroke)
    if isinstance(machine.spec.cube.noc, MeshSpec):
        draw_mesh_die(svg, die, machine)
    else:
        draw_round_die(svg, die, machine)
    x = die.right + 16
    for index, (kind, name, figures) in enumerate(_entries(machine)):
        y = box.y + index * ENTRY_HEIGHT
        svg.rect(x, y + 2, 12, 12, fill=kind.fill, stroke=kind.stroke, radius=2)
        text = Box(x + 20, y, box.right - x - 20, ENTRY_HEIGHT)
        draw_label(svg, text, (name,), size=12, bold=True)
        lower = Box(text.x, y + 17, text.width, 18)
        draw_label(svg, lower, (figures,), fill=GREY)


def _entries(machine: Machine) -> list[Entry]:
    spec, cube, totals = machine.spec, machine.spec.cube, totals_of(machine)
    peak = flops_text(totals.f16_flop_per_s // totals.num_cubes)
    hbm, rate = cube.hbm, rate_text(totals.hbm_bytes_per_us // totals.num_cubes)
    stack = f"HBM {format_bytes(hbm.capacity_bytes)}", f"{hbm.pseudo_channels} channels, {rate}"
    sram = f"{rate_text(cube.sram.bytes_per_us)}, {format_ps(cube.sram.access_ps)}"
    entries: list[Entry] = [
        _network_entry(cube),
        (BlockKind.PE, count_text(cube.pes, "PE"), f"{peak} f16"),
        (BlockKind.HBM, *stack),
        (BlockKind.HBM, "HBM controller", f"one a PE, {rate_text(slice_bytes_per_us(spec))}"),
        (BlockKind.MEMORY, f"SRAM {format_bytes(cube.sram.capacity_bytes)}", sram),
        (BlockKind.PROCESSOR, "M_CPU", f"{format_ps(cube.m_cpu.command_ps)} a command"),
    ]
    if cube.ucie is not None:
        figures = f"{cube.ucie.connections} a side, {rate_text(cube.ucie.bytes_per_us)}"
        entries.append((BlockKind.PORT, "UCIe connection", figures))
    if spec.sip.io is None:
        entries.append((BlockKind.MOVER, "PCIe, IO CPU", "beside the M_CPU"))
    return entries


def _network_entry(cube: CubeSpec) -> Entry:
    noc = cube.noc
    if isinstance(noc, CrossbarSpec):
        figures = f"{rate_text(noc.attach_bytes_per_us)} a port, {format_ps(noc.router_ps)}"
        return BlockKind.SWITCH, "crossbar", figures
    return BlockKind.ROUTER, "router", f"{rate_text(noc.bytes_per_us)}, {format_ps(noc.router_ps)}"
