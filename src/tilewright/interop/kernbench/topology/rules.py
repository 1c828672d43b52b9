"""What several keys of a topology decide together, and KernBench's defaults for absent keys."""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, prod

from tilewright.interop.kernbench.topology.document import KeyPath
from tilewright.interop.kernbench.topology.keys import CORNERS, SIP_TOPOLOGIES, key_text
from tilewright.interop.kernbench.topology.reading import Problem, Reading, Setting
from tilewright.machine.spec import DotArraySpec, MachineSpec, MeshSpec

SIPS: KeyPath = ("system", "sips", "count")
CUBES: KeyPath = ("system", "sips", "cubes_per_sip")
SIP_TOPOLOGY: KeyPath = ("system", "sips", "topology")
SIP_GRID: tuple[KeyPath, KeyPath] = (("system", "sips", "w"), ("system", "sips", "h"))
CUBE_MESH: tuple[KeyPath, KeyPath] = (("sip", "cube_mesh", "w"), ("sip", "cube_mesh", "h"))
CORNER_NAMES: KeyPath = ("cube", "pe_layout", "corners")
PER_CORNER: KeyPath = ("cube", "pe_layout", "pe_per_corner")
SLICES: KeyPath = ("cube", "memory_map", "hbm_slices_per_cube")
CHANNELS: KeyPath = ("cube", "memory_map", "hbm_pseudo_channels")
SLICE_CHANNELS: KeyPath = ("cube", "components", "hbm_ctrl", "attrs", "num_pcs")
EFFICIENCY: KeyPath = ("cube", "components", "hbm_ctrl", "attrs", "efficiency")
PAGE: KeyPath = ("cube", "pe_template", "components", "pe_mmu", "attrs", "page_size")
PEAK: KeyPath = ("cube", "pe_template", "components", "pe_gemm", "attrs", "peak_tflops_f16")

DEFAULTS = {
    SIPS: 1,
    CUBES: 16,
    CUBE_MESH[0]: 4,
    CUBE_MESH[1]: 4,
    PER_CORNER: 2,
    SLICES: 8,
    SLICE_CHANNELS: 8,
}
"""Counts that KernBench's code takes for absent keys.

Of its two values for ``pe_per_corner`` this is the allocators', which the shipped file has too.
"""

DEFAULT_PAGE_BYTES = 4_096


def apply_rules(reading: Reading, base: MachineSpec) -> None:
    """Add to a reading what its keys mean together; ``base`` is the machine it is a change of."""
    _set_cubes(reading)
    _set_pes(reading, base)
    _set_fabric(reading)
    _set_fabric_latency(reading, base)
    _set_gemm_clock(reading, base)
    if "cube.hbm.simple_efficiency_percent" in reading.settings:
        reading.set(Setting("cube.hbm.model", "simple", EFFICIENCY))
    if "pe.mmu.page_bytes" not in reading.settings and PAGE not in reading.refused:
        reading.set(Setting("pe.mmu.page_bytes", DEFAULT_PAGE_BYTES, PAGE, is_default=True))
    _drop_idle_fabric(reading, base)


def _count(reading: Reading, path: KeyPath) -> int:
    """Return a count of the topology, or KernBench's default for an absent key."""
    return int(reading.numbers.get(path, Fraction(DEFAULTS[path])))


def _is_usable(reading: Reading, *paths: KeyPath) -> bool:
    """Return whether none of the keys was refused, or a section that they stand in."""
    heads = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    return reading.refused.isdisjoint(heads)


def _set_count(reading: Reading, field: str, path: KeyPath) -> None:
    if _is_usable(reading, path):
        is_default = path not in reading.numbers
        reading.set(Setting(field, _count(reading, path), path, is_default))


def _set_cubes(reading: Reading) -> None:
    _set_count(reading, "sip.count", SIPS)
    _set_count(reading, "sip.columns", CUBE_MESH[0])
    _set_count(reading, "sip.rows", CUBE_MESH[1])
    if not _is_usable(reading, CUBES, *CUBE_MESH):
        return
    columns, rows = (_count(reading, path) for path in CUBE_MESH)
    counted = f"{columns} x {rows} cubes in sip.cube_mesh"
    _check_equal(reading, CUBES, columns * rows, counted, CUBE_MESH)


def _set_pes(reading: Reading, base: MachineSpec) -> None:
    if not _is_usable(reading, PER_CORNER, CORNER_NAMES):
        return
    per_corner = _count(reading, PER_CORNER)
    pes = per_corner * len(CORNERS)
    is_default = PER_CORNER not in reading.numbers
    reading.set(Setting("cube.pes", pes, PER_CORNER, is_default))
    noc = base.cube.noc
    if isinstance(noc, MeshSpec) and pes > noc.pe_routers:
        # a square around the hole with a router for each PE, and as many rows on both sides of it
        side = noc.hole_rows + 2 * (isqrt(pes - 1) // 2 + 1)
        for name in ("rows", "columns"):
            reading.set(Setting(f"cube.noc.{name}", side, PER_CORNER))
    if _is_usable(reading, SLICES):
        counted = f"{pes} PEs in cube.pe_layout, each with a slice of its own"
        _check_equal(reading, SLICES, pes, counted, (PER_CORNER,))
    _set_channels(reading, pes)


def _set_channels(reading: Reading, pes: int) -> None:
    if not _is_usable(reading, CHANNELS, SLICE_CHANNELS):
        return
    if CHANNELS in reading.numbers:
        total = int(reading.numbers[CHANNELS])
        reading.set(Setting("cube.hbm.pseudo_channels", total, CHANNELS))
    if SLICE_CHANNELS in reading.numbers or CHANNELS not in reading.numbers:
        is_default = SLICE_CHANNELS not in reading.numbers
        total = pes * _count(reading, SLICE_CHANNELS)
        reading.set(Setting("cube.hbm.pseudo_channels", total, SLICE_CHANNELS, is_default))


def _check_equal(
    reading: Reading, path: KeyPath, wanted: int, counted: str, others: Sequence[KeyPath]
) -> None:
    """Refuse a count that differs from another key's; an absent one counts with its default."""
    found = _count(reading, path)
    if found == wanted:
        return
    expected = "one count in both"
    if path in reading.numbers:
        problem = Problem(f"{found}, but {counted}", expected, f"write {wanted}, or change those")
        reading.refuse(path, problem)
        return
    at = next((other for other in others if other in reading.numbers), path)
    detail = f"{counted}, while {key_text(path)} is absent and KernBench then takes {found}"
    reading.refuse(at, Problem(detail, expected, f"write {key_text(path)}: {wanted}"))


def _set_fabric(reading: Reading) -> None:
    if not _is_usable(reading, SIPS, SIP_TOPOLOGY, *SIP_GRID):
        return
    sips = _count(reading, SIPS)
    written = [path for path in SIP_GRID if path in reading.numbers]
    if len(written) == 1:
        expected = "both or neither: the columns and rows of SIPs"
        [missing] = set(SIP_GRID) - set(written)
        fix = f"write {key_text(missing)} too"
        reading.refuse(written[0], Problem(f"no {key_text(missing)} beside it", expected, fix))
        return
    columns = int(reading.numbers[written[0]]) if written else isqrt(sips)
    rows = int(reading.numbers[written[1]]) if written else columns
    if written and columns * rows != sips:
        found = f"{columns} x {rows} SIPs, but {key_text(SIPS)} is {sips}"
        fix = "change w and h, or the count"
        reading.refuse(written[0], Problem(found, "w x h SIPs in all", fix))
        return
    kind = SIP_TOPOLOGIES.get(next(iter(reading.words.get(SIP_TOPOLOGY, ())), ""))
    has_grid = kind in ("torus", "mesh")
    if has_grid and not written and columns * rows != sips:
        found = f"{reading.words[SIP_TOPOLOGY][0]} of {sips} SIPs, which are no square"
        fix = f"write {' and '.join(key_text(path) for path in SIP_GRID)}"
        reading.refuse(SIP_TOPOLOGY, Problem(found, "columns and rows of SIPs", fix))
        return
    if kind is not None:
        reading.set(Setting("fabric.kind", kind, SIP_TOPOLOGY))
    if has_grid:
        reading.set(Setting("fabric.columns", columns, written[0] if written else SIP_TOPOLOGY))
    elif written:
        reading.without_effect |= dict.fromkeys(written, "the SIPs form no grid")


def _set_fabric_latency(reading: Reading, base: MachineSpec) -> None:
    """Set the latency between SIPs: the length of their links times the delay of a wire."""
    ps_per_mm = _int_of(reading, "ps_per_mm", base.ps_per_mm)
    for path, length_mm in reading.numbers.items():
        if not path[-1].endswith("distance_mm"):
            continue
        latency_ps = length_mm * ps_per_mm
        if latency_ps.denominator != 1:
            found = f"{float(length_mm)} mm with a delay of {ps_per_mm} ps per mm"
            fix = "round the length, or set fabric.latency_ps in the machine file"
            reading.refuse(path, Problem(found, "a latency of whole ps", fix))
        else:
            reading.set(Setting("fabric.latency_ps", latency_ps.numerator, path))


def _int_of(reading: Reading, field: str, default: int) -> int:
    """Return what a reading sets an integer field to, or else the default."""
    setting = reading.settings.get(field)
    return setting.value if setting is not None and isinstance(setting.value, int) else default


def _set_gemm_clock(reading: Reading, base: MachineSpec) -> None:
    """Set the clock with which the GEMM unit's array reaches the peak that the topology states."""
    gemm = base.pe.gemm
    if PEAK not in reading.numbers or not isinstance(gemm, DotArraySpec):
        return
    sides = {"rows": gemm.rows, "columns": gemm.columns, "depth": gemm.depth}
    flop = 2 * prod(_int_of(reading, f"pe.gemm.{name}", side) for name, side in sides.items())
    if flop == 0:
        return  # the machine's schema refuses such an array
    hz = reading.numbers[PEAK] * 10**12 / flop
    if hz.denominator != 1:
        found = f"{float(reading.numbers[PEAK])} TFLOPS of {flop} operations a cycle"
        fix = "state mac_m, mac_n, mac_k and clock_freq_ghz instead"
        reading.refuse(PEAK, Problem(found, "a clock of whole Hz", fix))
    else:
        reading.set(Setting("pe.gemm.hz", hz.numerator, PEAK))


def _drop_idle_fabric(reading: Reading, base: MachineSpec) -> None:
    """Move settings of the fabric that another key switches off to those without effect."""

    kind = reading.settings.get("fabric.kind")
    if _int_of(reading, "sip.count", base.sip.count) == 1:
        idle, reason = "fabric.", "there is one SIP"
    elif (base.fabric.kind if kind is None else kind.value) != "switch":
        idle, reason = "fabric.switch_ps", "the SIPs are joined without a switch"
    else:
        return
    for name in [name for name in reading.settings if name.startswith(idle)]:
        reading.without_effect[reading.settings.pop(name).key] = reason
