"""What the panels of a machine's picture share: boxes, colours per kind of block, labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tilewright.machine.build import Machine
from tilewright.machine.totals import totals_of
from tilewright.report.format import rate_text
from tilewright.report.svg import INK, Box, Svg, shorten, text_width
from tilewright.units import format_bytes

GREY = "#475569"
GROUND = "#f8fafc"  # of a panel
WIRE = "#64748b"
LINE = 1.25  # from line to line, in sizes of the letters
TAG_SIZE, LEAST_SIZE = 10, 8  # letters below the least cannot be read, so they are left out


class BlockKind(Enum):
    """Blocks of one kind have one colour in all panels; the label stands in the legend."""

    HOST = "host", "#e2e8f0", "#475569"
    SWITCH = "switch, crossbar", "#e0e7ff", "#4338ca"
    IO = "IO chiplet", "#fef9c3", "#a16207"
    CUBE = "cube", "#dbeafe", "#2563eb"
    ROUTER = "router", "#cbd5e1", "#334155"
    PORT = "UCIe connection", "#a5f3fc", "#0e7490"
    PE = "PE, compute unit", "#dcfce7", "#15803d"
    MOVER = "DMA, MMU, PCIe", "#ccfbf1", "#0f766e"
    MEMORY = "SRAM, TCM, registers", "#f3e8ff", "#9333ea"
    HBM = "HBM, controller", "#ffe4e6", "#e11d48"
    PROCESSOR = "processor", "#ffedd5", "#c2410c"

    def __init__(self, label: str, fill: str, stroke: str) -> None:
        self.label, self.fill, self.stroke = label, fill, stroke


def draw_block(
    svg: Svg, box: Box, kind: BlockKind, lines: Sequence[str] = (), *, tip: str = "", size: int = 11
) -> None:
    """A box of a kind's colours with a bold first line; what does not fit is only in the tip."""
    radius = min(5.0, box.width / 4, box.height / 4)
    tip = tip or " ".join(lines)
    svg.box(box, fill=kind.fill, stroke=kind.stroke, radius=radius, tip=tip)
    draw_lines(svg, box, lines, size=size)


def draw_hbm(svg: Svg, box: Box, machine: Machine) -> None:
    """Draw the stack of one cube."""
    totals, hbm = totals_of(machine), machine.spec.cube.hbm
    rate = rate_text(totals.hbm_bytes_per_us // totals.num_cubes)
    draw_block(svg, box, BlockKind.HBM, ("HBM", format_bytes(hbm.capacity_bytes), rate), size=14)


@dataclass(frozen=True, slots=True)
class Tile:
    """A small block that sits on a router: its names from long to short, its name in full."""

    kind: BlockKind
    names: tuple[str, ...]
    tip: str


SRAM_TILE = Tile(BlockKind.MEMORY, ("SRAM", "S"), "sram")
M_CPU_TILE = Tile(BlockKind.PROCESSOR, ("M_CPU", "CPU", "M"), "m_cpu")
PCIE_TILE = Tile(BlockKind.MOVER, ("PCIe", "P"), "pcie_ep")


def tiles_of_pe(pe: int) -> tuple[Tile, Tile]:
    """Return a PE and the controller of its slice."""
    return (
        Tile(BlockKind.PE, (f"PE{pe}", str(pe)), f"pe{pe}"),
        Tile(BlockKind.HBM, ("HBM", "H"), f"hbm_ctrl.pe{pe}"),
    )


def draw_tile(svg: Svg, box: Box, tile: Tile) -> None:
    """Draw a tile with the first of its names that fits, if any does."""
    draw_block(svg, box, tile.kind, tip=tile.tip)
    for name in tile.names:
        size = _fitting_size(box, (name,), 11, bold=False)
        if size is not None:
            svg.text(*box.middle, name, size=size)
            return


def draw_lines(svg: Svg, box: Box, lines: Sequence[str], *, size: int) -> None:
    """Text in the middle of a box: smaller if need be, without its last lines if need be."""
    for fewer in range(len(lines), 0, -1):
        shown = lines[:fewer]
        fitting = _fitting_size(box, shown, size, bold=True)
        if fitting is not None:
            height = LINE * fitting
            middle, top = box.middle[0], box.middle[1] - height * (fewer - 1) / 2
            for index, line in enumerate(shown):
                svg.text(middle, top + index * height, line, size=fitting, bold=index == 0)
            return


def _fitting_size(box: Box, lines: Sequence[str], most: int, *, bold: bool) -> int | None:
    """The largest size at which all lines fit; ``bold`` is the first of them."""
    room = box.width - min(2.0, 0.04 * box.width)
    for size in range(most, LEAST_SIZE - 1, -1):
        widths = [text_width(line, size=size, bold=bold and line is lines[0]) for line in lines]
        if LINE * size * len(lines) <= box.height and max(widths) <= room:
            return size
    return None


def draw_label(
    svg: Svg,
    box: Box,
    lines: Sequence[str],
    *,
    size: int = 11,
    bold: bool = False,
    fill: str = INK,
) -> None:
    """Lines from the top left of a box; each is shortened to its width."""
    for index, line in enumerate(lines):
        text = shorten(line, box.width, size=size, bold=bold)
        if text and (index + 1) * 1.3 * size <= box.height + 1:
            y = box.y + (index + 0.5) * 1.3 * size
            svg.text(box.x, y, text, size=size, anchor="start", bold=bold, fill=fill)


def draw_arrow(
    svg: Svg,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    stroke: str = WIRE,
    dash: str = "",
    both: bool = False,
) -> None:
    """A straight arrow along an axis; ``both`` puts a head at its start too."""
    svg.line((start, end), stroke=stroke, dash=dash)
    _head(svg, start, end, stroke)
    if both:
        _head(svg, end, start, stroke)


def _head(svg: Svg, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    (x, y), along = end, (_sign(end[0] - start[0]), _sign(end[1] - start[1]))
    back = x - 7 * along[0], y - 7 * along[1]
    across = 3.5 * along[1], 3.5 * along[0]
    wings = [(back[0] + side * across[0], back[1] + side * across[1]) for side in (1, -1)]
    svg.polygon(((x, y), *wings), fill=colour)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def draw_tag(svg: Svg, x: float, y: float, text: str, *, room: float = 1000) -> None:
    """A rate on a wire, on a ground that hides the wire; smaller or nothing if it has no room."""
    for smaller in range(TAG_SIZE, LEAST_SIZE - 1, -1):
        width = text_width(text, size=smaller)
        if width + 2 <= room:
            height = smaller + 2
            svg.rect(x - width / 2, y - height / 2, width, height, fill=GROUND)
            svg.text(x, y, text, size=smaller)
            return
