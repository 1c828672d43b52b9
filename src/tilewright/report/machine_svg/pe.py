"""The fourth panel: the blocks of one PE, and the way of data and commands through them."""

from tilewright.machine.build import Machine
from tilewright.machine.spec import TcmSpec
from tilewright.machine.totals import slice_bytes_per_us, totals_of
from tilewright.report.format import flops_text, gemm_text, hertz_text, rate_text
from tilewright.report.machine_svg.style import (
    GREY,
    WIRE,
    BlockKind,
    draw_arrow,
    draw_block,
    draw_label,
    draw_tag,
)
from tilewright.report.svg import Box, Svg
from tilewright.units import count_text, format_bytes, format_ps

COLUMN = 78  # width of a block
FRAME = 6  # around the two units
COMMAND = BlockKind.PROCESSOR.stroke


class _Places:
    """Where the blocks are."""

    def __init__(self, box: Box) -> None:
        pitch = (box.width - FRAME - COLUMN) / 4
        x = [box.x + index * pitch for index in range(5)]
        top, middle, bottom = box.y + 8, box.y + 126, box.y + 284
        self.cpu = Box(x[0], top, COLUMN, 54)
        self.scheduler = Box(x[1], top, COLUMN, 54)
        self.router = Box(x[0], middle + 15, COLUMN, 60)
        self.dma = Box(x[1], middle - 2, COLUMN, 94)
        self.tcm = Box(x[2], middle - 10, COLUMN, 110)
        self.registers = Box(x[3], middle - 10, COLUMN, 110)
        self.gemm = Box(x[4], middle - 46, COLUMN, 84)
        self.vector = Box(x[4], middle + 52, COLUMN, 84)
        self.hbm = Box(x[0], bottom, COLUMN, 74)
        self.mmu = Box(x[1], bottom, COLUMN, 74)
        self.note = Box(x[2], bottom + 14, box.right - x[2], 60)


def draw_pe(svg: Svg, box: Box, machine: Machine) -> None:
    at = _Places(box)
    _draw_data_wires(svg, at, machine)
    _draw_command_wires(svg, at)
    _draw_memories(svg, at, machine)
    _draw_units(svg, at, machine)
    lines = (
        "solid: data, with the rate each way",
        "dashed: commands and addresses; the PE issues",
        f"in order, {count_text(machine.spec.pe.queue_commands, 'command')} in flight",
    )
    draw_label(svg, at.note, lines, fill=GREY)


def _draw_memories(svg: Svg, at: _Places, machine: Machine) -> None:
    spec, pe, dma, mmu = machine.spec, machine.spec.pe, machine.spec.pe.dma, machine.spec.pe.mmu
    lines: tuple[str, ...] = ("router", format_ps(spec.cube.noc.router_ps))
    draw_block(svg, at.router, BlockKind.ROUTER, lines)
    size = format_bytes(spec.cube.hbm.capacity_bytes // spec.cube.pes)
    lines = ("HBM slice", size, count_text(spec.cube.pseudo_channels_per_slice, "channel"))
    draw_block(svg, at.hbm, BlockKind.HBM, lines)
    channels = f"{dma.read_channels} rd, {dma.write_channels} wr"
    lines = ("DMA", channels, format_bytes(dma.in_flight_bytes), "in flight", "each")
    draw_block(svg, at.dma, BlockKind.MOVER, lines)
    pages, walk = f"{format_bytes(mmu.page_bytes)} page", f"walk {format_ps(mmu.walk_ps)}"
    draw_block(svg, at.mmu, BlockKind.MOVER, ("MMU", pages, f"TLB {mmu.tlb_entries}", walk))
    draw_block(svg, at.tcm, BlockKind.MEMORY, _tcm_lines(pe.tcm))
    lines = ("registers", format_bytes(pe.registers.capacity_bytes))
    draw_block(svg, at.registers, BlockKind.MEMORY, lines)


def _tcm_lines(tcm: TcmSpec) -> tuple[str, ...]:
    """Ports of two rates are told in the block, since each wire has both."""
    lines = ("TCM", format_bytes(tcm.capacity_bytes))
    if tcm.read_bytes_per_us != tcm.write_bytes_per_us:
        read, write = rate_text(tcm.read_bytes_per_us), rate_text(tcm.write_bytes_per_us)
        return (*lines, "read", read, "write", write)
    return (*lines, f"({format_bytes(tcm.reserved_bytes)}", "reserved)")


def _draw_units(svg: Svg, at: _Places, machine: Machine) -> None:
    pe, totals = machine.spec.pe, totals_of(machine)
    number, _, unit = flops_text(totals.f16_flop_per_s // totals.num_pes).partition(" ")
    lines = ("GEMM unit", gemm_text(pe.gemm), hertz_text(pe.gemm.hz), number, f"{unit} f16")
    draw_block(svg, at.gemm, BlockKind.PE, lines)
    lanes, clock = f"{pe.vector.lanes} lanes", hertz_text(pe.vector.hz)
    draw_block(svg, at.vector, BlockKind.PE, ("vector unit", lanes, clock))
    for box, name, processor in (
        (at.cpu, "PE CPU", pe.cpu),
        (at.scheduler, "scheduler", pe.scheduler),
    ):
        command = (name, format_ps(processor.command_ps), "a command")
        draw_block(svg, box, BlockKind.PROCESSOR, command)


def _draw_data_wires(svg: Svg, at: _Places, machine: Machine) -> None:
    spec, tcm = machine.spec, machine.spec.pe.tcm
    ports = rate_text(tcm.read_bytes_per_us)
    if tcm.read_bytes_per_us != tcm.write_bytes_per_us:
        ports = ""
    _draw_wire(svg, at.router, at.dma, rate_text(spec.cube.noc.attach_bytes_per_us))
    _draw_wire(svg, at.dma, at.tcm, ports)
    _draw_wire(svg, at.tcm, at.registers, ports)
    x = at.router.middle[0]
    draw_arrow(svg, (x, at.router.bottom), (x, at.hbm.y), both=True)
    draw_tag(svg, x, (at.router.bottom + at.hbm.y) / 2, rate_text(slice_bytes_per_us(spec)))
    for unit in (at.gemm, at.vector):
        y = min(max(unit.middle[1], at.registers.y + 10), at.registers.bottom - 10)
        draw_arrow(svg, (at.registers.right, y), (unit.x, y), both=True)


def _draw_wire(svg: Svg, one: Box, other: Box, rate: str) -> None:
    """Number above the wire, unit below it: a gap between columns is narrow."""
    y = one.middle[1]
    draw_arrow(svg, (one.right, y), (other.x, y), both=True)
    middle, room = (one.right + other.x) / 2, other.x - one.right
    number, _, unit = rate.partition(" ")
    draw_tag(svg, middle, y - 11, number, room=room)
    draw_tag(svg, middle, y + 11, unit, room=room)


def _draw_command_wires(svg: Svg, at: _Places) -> None:
    dash = "4 3"
    y = at.cpu.middle[1]
    draw_arrow(svg, (at.cpu.right, y), (at.scheduler.x, y), stroke=COMMAND, dash=dash)
    x = at.router.middle[0]
    draw_arrow(svg, (x, at.router.y), (x, at.cpu.bottom), stroke=COMMAND, dash=dash)
    x = at.dma.middle[0]
    draw_arrow(svg, (x, at.scheduler.bottom), (x, at.dma.y), stroke=COMMAND, dash=dash)
    draw_arrow(svg, (x, at.dma.bottom), (x, at.mmu.y), stroke=WIRE, dash=dash, both=True)
    units = Box(at.gemm.x, at.gemm.y, COLUMN, at.vector.bottom - at.gemm.y)
    frame = units.inset(-FRAME)
    svg.box(frame, fill="none", stroke=COMMAND, dash=dash)
    x = frame.middle[0]
    svg.line(((at.scheduler.right, y), (x, y)), stroke=COMMAND, dash=dash)
    draw_arrow(svg, (x, y), (x, frame.y), stroke=COMMAND, dash=dash)
