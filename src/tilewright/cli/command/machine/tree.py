"""A machine for people: a tree of its parts with their figures, and its totals."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tilewright.machine.coords import CubeCoord
from tilewright.machine.node import place_name
from tilewright.machine.spec import BlockSpec, CrossbarSpec, MachineSpec
from tilewright.machine.spec.field import walk_sections
from tilewright.machine.spec.network import pcie_bytes_per_us
from tilewright.machine.totals import slice_bytes_per_us
from tilewright.records import MachineFigures, MachineShowRecord
from tilewright.report.format import (
    fabric_text,
    flops_text,
    gemm_text,
    hertz_text,
    network_text,
    parallel_rate_text,
    pcie_text,
    pieces_text,
    rate_text,
)
from tilewright.units import count_text, format_bytes, format_ps

FIRST_CUBE = place_name(CubeCoord(0, 0)) + "."


def machine_view(spec: MachineSpec, record: MachineShowRecord) -> RenderableType:
    """The tree, the totals, the warnings, and what building took."""
    title = f"{spec.name}: {spec.description}" if spec.description else spec.name
    tree = Tree(Text(title, style="bold"))
    _add_system(tree, spec)
    _add_cube(_add_sip(tree, spec, record.figures), spec, record)
    lines = [
        f"{path}: behaves as {section.impl}"
        for path, section in walk_sections(spec)
        if isinstance(section, BlockSpec) and section.impl is not None
    ]
    lines += [f"warning: {warning}" for warning in record.warnings] or ["no warnings"]
    lines.append(
        f"{record.num_nodes:,} nodes and {record.num_links:,} links, proved free of deadlock; "
        f"built in {record.build_seconds:.2f} s"
    )
    if record.picture is not None:
        lines.append(f"picture: {record.picture}")
    return Group(tree, _totals_table(record.figures), Text("\n".join(lines)))


def _totals_table(figures: MachineFigures) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    nominal, refreshed = figures.hbm_bytes_per_us, figures.refreshed_hbm_bytes_per_us
    share = f" ({refreshed / nominal:.2%})" if nominal else ""  # below 1 B/us there is none
    rows = [
        ("PEs", f"{figures.num_pes:,}"),
        ("f16 peak", flops_text(figures.f16_flop_per_s)),
        ("HBM capacity", format_bytes(figures.hbm_bytes)),
        ("HBM bandwidth, nominal", rate_text(nominal)),
        ("HBM bandwidth, limited by refresh", rate_text(refreshed) + share),
        ("bisection of a cube's network", rate_text(figures.cube_bisection_bytes_per_us)),
        ("bisection of a SIP's cube mesh", _or_none(figures.sip_bisection_bytes_per_us)),
        ("bisection of the fabric", _or_none(figures.fabric_bisection_bytes_per_us)),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _or_none(bytes_per_us: int | None) -> str:
    return "nothing to cut" if bytes_per_us is None else rate_text(bytes_per_us)


def _add(tree: Tree, name: str, *figures: str) -> Tree:
    return tree.add(Text(f"{name}: {', '.join(figures)}"))


def _add_system(tree: Tree, spec: MachineSpec) -> None:
    pcie, fabric = spec.host.pcie, spec.fabric
    rate = rate_text(pcie_bytes_per_us(pcie, flit_bytes=spec.flit_bytes))
    endpoint = f"endpoint {format_ps(pcie.endpoint_ps)}"
    _add(tree, "host", f"{pcie_text(pcie)} to each SIP", rate, endpoint)
    figures = [fabric_text(spec)]
    if spec.sip.count > 1:
        links = parallel_rate_text(fabric.links, fabric.bytes_per_us)
        figures += [f"{links} a SIP", f"{format_ps(fabric.latency_ps)} a link"]
        figures += [f"switch {format_ps(fabric.switch_ps)}"] * (fabric.kind == "switch")
    _add(tree, "fabric", *figures)


def _add_sip(tree: Tree, spec: MachineSpec, figures: MachineFigures) -> Tree:
    sip, ucie, count = spec.sip, spec.cube.ucie, figures.num_sips
    peak = f"{flops_text(figures.f16_flop_per_s // count)} f16"
    pes, hbm = count_text(figures.num_pes // count, "PE"), format_bytes(figures.hbm_bytes // count)
    branch = _add(tree, f"SIP ({count})", pes, peak, f"HBM {hbm}")
    command = f"IO CPU {format_ps(sip.io_cpu.command_ps)} a command"
    if sip.io is None:
        _add(branch, "IO chiplet", "none: PCIe endpoint and IO CPU sit beside the M_CPU", command)
    else:
        _add(branch, "IO chiplet", f"crossbar {format_ps(sip.io.noc_ps)}", command)
    mesh = [pieces_text(sip.columns, sip.rows, "cube")]
    if ucie is not None:
        mesh.append(f"UCIe {parallel_rate_text(ucie.connections, ucie.bytes_per_us)} a port")
        mesh.append(f"{format_ps(ucie.side_ps)} a side")
    _add(branch, "cube mesh", *mesh)
    return branch


def _add_cube(tree: Tree, spec: MachineSpec, record: MachineShowRecord) -> None:
    cube, noc, figures = spec.cube, spec.cube.noc, record.figures
    count = figures.num_cubes
    peak = f"{flops_text(figures.f16_flop_per_s // count)} f16"
    branch = _add(tree, f"cube ({spec.sip.num_cubes} a SIP)", count_text(cube.pes, "PE"), peak)
    is_crossbar = isinstance(noc, CrossbarSpec)  # has ports alone, no wires between routers
    rate = rate_text(noc.attach_bytes_per_us if is_crossbar else noc.bytes_per_us)
    latency = format_ps(noc.router_ps)
    _add(branch, "network", network_text(cube), rate, latency)
    ports = "none"
    if cube.ucie is not None:
        ports = f"N, E, S, W of {count_text(cube.ucie.connections, 'connection')} each"
    _add(branch, "ports", ports)
    nominal = rate_text(figures.hbm_bytes_per_us // count)
    refreshed = f"{rate_text(figures.refreshed_hbm_bytes_per_us // count)} with refresh"
    channels = count_text(cube.hbm.pseudo_channels, "pseudo-channel")
    size = format_bytes(cube.hbm.capacity_bytes)
    _add(branch, "HBM", size, channels, nominal, refreshed)
    size, rate = format_bytes(cube.sram.capacity_bytes), rate_text(cube.sram.bytes_per_us)
    seat = _router_of("sram", record)
    _add(branch, "SRAM", size, rate, format_ps(cube.sram.access_ps), f"on {seat}")
    command, seat = format_ps(cube.m_cpu.command_ps), _router_of("m_cpu", record)
    _add(branch, "M_CPU", f"{command} a command", f"on {seat}")
    _add_pe(branch, spec, figures)


def _router_of(name: str, record: MachineShowRecord) -> str:
    return record.attachments[f"{FIRST_CUBE}{name}"].removeprefix(FIRST_CUBE)


def _add_pe(tree: Tree, spec: MachineSpec, figures: MachineFigures) -> None:
    pe, cube, dma, tcm, mmu = spec.pe, spec.cube, spec.pe.dma, spec.pe.tcm, spec.pe.mmu
    peak = f"{flops_text(figures.f16_flop_per_s // figures.num_pes)} f16"
    branch = _add(tree, f"PE ({cube.pes} a cube)", peak)
    size = format_bytes(cube.hbm.capacity_bytes // cube.pes)
    channels = count_text(cube.pseudo_channels_per_slice, "pseudo-channel")
    _add(branch, "HBM slice", size, channels, rate_text(slice_bytes_per_us(spec)))
    writes = count_text(dma.write_channels, "write channel")
    channels = f"{dma.read_channels} read and {writes}"
    in_flight = f"{format_bytes(dma.in_flight_bytes)} in flight each"
    _add(branch, "DMA", channels, in_flight, rate_text(cube.noc.attach_bytes_per_us))
    pages, walk = f"pages of {format_bytes(mmu.page_bytes)}", f"walk {format_ps(mmu.walk_ps)}"
    _add(branch, "MMU", pages, f"TLB {mmu.tlb_entries}", walk)
    size, reserved = format_bytes(tcm.capacity_bytes), format_bytes(tcm.reserved_bytes)
    read, write = rate_text(tcm.read_bytes_per_us), rate_text(tcm.write_bytes_per_us)
    _add(branch, "TCM", size, f"{reserved} of it reserved", f"read {read}", f"write {write}")
    _add(branch, "registers", format_bytes(pe.registers.capacity_bytes))
    _add(branch, "GEMM unit", f"{gemm_text(pe.gemm)} at {hertz_text(pe.gemm.hz)}", peak)
    _add(branch, "vector unit", f"{pe.vector.lanes} lanes at {hertz_text(pe.vector.hz)}")
    _add(branch, "PE CPU", f"{format_ps(pe.cpu.command_ps)} a command")
    command = f"{format_ps(pe.scheduler.command_ps)} a command"
    _add(branch, "scheduler", command, f"{pe.queue_commands} in flight")
