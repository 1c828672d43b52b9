"""The third panel: one cube with its network, what sits on it, and a key with the figures."""

from tilewright.machine.build import Machine
from tilewright.machine.spec import CrossbarSpec, CubeSpec, MeshSpec
from tilewright.machine.totals import slice_bytes_per_us, totals_of
from tilewright.report.format import flops_text, rate_text
from tilewright.report.machine_svg.cube_mesh import draw_mesh_die
from tilewright.report.machine_svg.cube_round import draw_round_die
from tilewright.report.machine_svg.style import GREY, PAINTS, BlockKind, Box, draw_label
from tilewright.report.svg import Svg
from tilewright.units import count_text, format_bytes, format_ps

KEY_WIDTH = 166
ENTRY_HEIGHT = 42

Entry = tuple[BlockKind, str, str]


def draw_cube(svg: Svg, box: Box, machine: Machine) -> None:
    side = min(box.height, box.width - KEY_WIDTH - 16)
    die = Box(box.x, box.y, side, side)
    svg.rect(die.x, die.y, side, side, fill="#ffffff", stroke=PAINTS[BlockKind.CUBE].stroke)
    if isinstance(machine.spec.cube.noc, MeshSpec):
        draw_mesh_die(svg, die, machine)
    else:
        draw_round_die(svg, die, machine)
    x = die.right + 16
    for index, (kind, name, figures) in enumerate(_entries(machine)):
        y = box.y + index * ENTRY_HEIGHT
        paint = PAINTS[kind]
        svg.rect(x, y + 2, 12, 12, fill=paint.fill, stroke=paint.stroke, radius=2)
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
