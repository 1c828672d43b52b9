"""A machine as one picture: system, SIP, cube and PE, with the figures that matter."""

from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.totals import totals_of
from tilewright.report.format import fabric_text, flops_text, network_text, pieces_text, rate_text
from tilewright.report.machine_svg.cube import draw_cube
from tilewright.report.machine_svg.pe import draw_pe
from tilewright.report.machine_svg.sip import draw_sip
from tilewright.report.machine_svg.style import GREY, GROUND, BlockKind, draw_label
from tilewright.report.machine_svg.system import draw_system
from tilewright.report.svg import Box, Svg, text_width
from tilewright.units import count_text, format_bytes

WIDTH, HEIGHT = 1200, 984
MARGIN = 20
HEADER, UPPER, LOWER = 64, 400, 426  # heights of the title and of the two rows of panels
PANEL_GAP = 14
BORDER = "#cbd5e1"


def draw_machine(machine: Machine) -> str:
    """The text of a self-contained SVG; equal machines give equal bytes."""
    spec, grid = machine.spec, machine.grid
    svg = Svg(WIDTH, HEIGHT, f"The machine {spec.name}")
    card = Box(0, 0, WIDTH, HEIGHT).inset(0.5)
    svg.box(card, fill="#ffffff", stroke=BORDER, radius=12)
    _draw_header(svg, machine)
    width = (WIDTH - 2 * MARGIN - PANEL_GAP) / 2
    left, right = MARGIN, MARGIN + width + PANEL_GAP
    top, low = MARGIN + HEADER, MARGIN + HEADER + UPPER + PANEL_GAP
    mesh = pieces_text(grid.columns, grid.rows, "cube")
    draw_system(svg, _panel(svg, Box(left, top, width, UPPER), "System", _sips(machine)), machine)
    draw_sip(svg, _panel(svg, Box(right, top, width, UPPER), "SIP", mesh), machine)
    network = network_text(spec.cube)
    draw_cube(svg, _panel(svg, Box(left, low, width, LOWER), "Cube", network), machine)
    draw_pe(svg, _panel(svg, Box(right, low, width, LOWER), "PE", "data path"), machine)
    _draw_legend(svg, Box(MARGIN, low + LOWER + 12, WIDTH - 2 * MARGIN, 44), machine)
    return svg.render()


def _sips(machine: Machine) -> str:
    sips = count_text(machine.grid.num_sips, "SIP")
    if machine.grid.num_sips == 1:
        return sips
    joined = "on" if machine.spec.fabric.kind == "switch" else "in"
    return f"{sips} {joined} a {fabric_text(machine.spec)}"


def _draw_header(svg: Svg, machine: Machine) -> None:
    spec, totals = machine.spec, totals_of(machine)
    width = WIDTH - 2 * MARGIN
    box = Box(MARGIN + 2, MARGIN - 4, width, 30)
    title = f"{spec.name}: {spec.description}" if spec.description else spec.name
    draw_label(svg, box, (" ".join(title.split()),), size=20, bold=True)
    figures = (
        count_text(totals.num_pes, "PE"),
        f"{flops_text(totals.f16_flop_per_s)} f16",
        f"{format_bytes(totals.hbm_bytes)} of HBM at {rate_text(totals.hbm_bytes_per_us)}",
        f"{rate_text(totals.refreshed_hbm_bytes_per_us)} with refresh",
    )
    lower = Box(box.x, box.y + 32, width, 22)
    draw_label(svg, lower, (" · ".join(figures),), size=14, fill=GREY)


def _panel(svg: Svg, box: Box, title: str, subtitle: str) -> Box:
    """Ground and title of a panel; what is left for its drawing."""
    svg.box(box, fill=GROUND, stroke=BORDER, radius=8)
    draw_label(svg, Box(box.x + 14, box.y + 10, 120, 24), (title,), size=15, bold=True)
    start = 14 + text_width(title, size=15, bold=True) + 10
    rest = Box(box.x + start, box.y + 11, box.width - start - 10, 24)
    draw_label(svg, rest, (subtitle,), size=13, fill=GREY)
    return Box(box.x + 14, box.y + 42, box.width - 28, box.height - 54)


def _draw_legend(svg: Svg, box: Box, machine: Machine) -> None:
    x, y = box.x + 2, box.y + 8
    for kind in BlockKind:
        width = 18 + text_width(kind.label, size=11) + 9
        if x + width > box.right:
            x, y = box.x + 2, y + 20
        svg.rect(x, y - 6, 12, 12, fill=kind.fill, stroke=kind.stroke, radius=2)
        svg.text(x + 18, y, kind.label, size=11, anchor="start")
        x += width
    text = f"machine {machine_hash(machine.spec)[:12]}"
    svg.text(box.right, box.y + 28, text, size=10, anchor="end", fill=GREY)
