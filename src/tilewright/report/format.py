"""Figures of machines, runs and steps in the words and units that people read."""

from typing import assert_never

from tilewright.machine.spec import (
    CrossbarSpec,
    CubeSpec,
    DotArraySpec,
    FabricSpec,
    GemmSpec,
    MachineSpec,
    MeshSpec,
    PcieSpec,
    RingSpec,
    SystolicSpec,
)
from tilewright.records import Bottleneck
from tilewright.records.phases import PhaseSpread
from tilewright.units import PS_PER_US, count_text, format_bytes, format_ps, format_rate, share_text


def rate_text(bytes_per_us: int) -> str:
    """
    >>> rate_text(57_614)
    '57.614 GB/s'
    """
    return format_rate(bytes_per_us, elapsed_ps=PS_PER_US)


def parallel_rate_text(count: int, bytes_per_us: int) -> str:
    """
    >>> parallel_rate_text(4, 128_000), parallel_rate_text(1, 128_000)
    ('4 x 128 GB/s', '128 GB/s')
    """
    return rate_text(bytes_per_us) if count == 1 else f"{count} x {rate_text(bytes_per_us)}"


def flops_text(flop_per_s: int) -> str:
    """In TFLOPS, at most three decimals.

    >>> flops_text(8_192_000_000_000), flops_text(2_097_152_000_000_000)
    ('8.192 TFLOPS', '2,097.152 TFLOPS')
    """
    whole, rest = divmod(round(flop_per_s, -9) // 10**9, 1000)
    return f"{whole:,}.{rest:03}".rstrip("0").rstrip(".") + " TFLOPS"


def hertz_text(hz: int) -> str:
    """In GHz or MHz, whichever is at least one.

    >>> hertz_text(10**9), hertz_text(750_000_000)
    ('1 GHz', '750 MHz')
    """
    unit, name = (10**9, "GHz") if hz >= 10**9 else (10**6, "MHz")
    whole, rest = divmod(hz * 1000 // unit, 1000)
    return f"{whole:,}.{rest:03}".rstrip("0").rstrip(".") + f" {name}"


def pieces_text(columns: int, rows: int, one: str) -> str:
    """
    >>> pieces_text(4, 2, "cube"), pieces_text(1, 1, "cube")
    ('4 x 2 cubes', '1 cube')
    """
    return count_text(1, one) if columns * rows == 1 else f"{columns} x {rows} {one}s"


def pcie_text(pcie: PcieSpec) -> str:
    """
    >>> pcie_text(PcieSpec())
    'PCIe 5.0 x16'
    """
    return f"PCIe {pcie.generation}.0 x{pcie.lanes}"


def fabric_text(spec: MachineSpec) -> str:
    """The shape that joins the SIPs.

    >>> fabric_text(MachineSpec())
    'switch'
    """
    fabric: FabricSpec = spec.fabric
    if spec.sip.count == 1:
        return "none"
    if fabric.kind in ("switch", "ring") or fabric.columns is None:
        return fabric.kind
    return f"{fabric.kind} of {fabric.columns} x {spec.sip.count // fabric.columns}"


def network_text(cube: CubeSpec) -> str:
    """The shape of a cube's own network.

    >>> network_text(CubeSpec())
    'mesh of 6 x 6 routers with a hole of 2 x 2'
    """
    match cube.noc:
        case MeshSpec(rows=rows, columns=columns, hole_rows=hole_rows, hole_columns=hole_columns):
            hole = f" with a hole of {hole_columns} x {hole_rows}" if hole_rows else ""
            return f"mesh of {pieces_text(columns, rows, 'router')}{hole}"
        case RingSpec(routers=routers):
            return f"ring of {count_text(routers, 'router')}"
        case CrossbarSpec():
            return "crossbar"
        case _:
            assert_never(cube.noc)


def gemm_text(gemm: GemmSpec) -> str:
    """The size of the array.

    >>> gemm_text(DotArraySpec()), gemm_text(SystolicSpec())
    ('16 x 16 x 16', '16 x 16 systolic')
    """
    match gemm:
        case DotArraySpec():
            return f"{gemm.rows} x {gemm.columns} x {gemm.depth}"
        case SystolicSpec():
            return f"{gemm.rows} x {gemm.columns} systolic"


UNKNOWN = "±?"  # there are too few phases for their half-width to mean anything


def width_text(phases: PhaseSpread | None) -> str:
    """Return the half-width as a share of the mean; empty if there is none.

    >>> width_text(None)
    ''
    """
    fraction = None if phases is None else phases.relative_half_width
    if phases is None or fraction is None:
        return ""
    return UNKNOWN if phases.may_miss_refresh else f"±{100 * fraction:.1f}%"


def ends_text(phases: PhaseSpread | None) -> str:
    """Return the smallest and the largest latency; empty of one phase.

    >>> ends_text(None)
    ''
    """
    if phases is None or phases.count == 1:
        return ""
    return f"{format_ps(phases.min_ps)} to {format_ps(phases.max_ps)}"


def latency_text(latency_ps: int, phases: PhaseSpread | None) -> str:
    """Return the mean with its half-width, smallest and largest."""
    text = format_ps(latency_ps if phases is None else round(phases.mean_ps))
    if phases is None or phases.reason == "long":
        return text
    if phases.count == 1:
        return f"{text} (at one refresh phase; --phases has the spread)"
    told = f"mean of {phases.count} refresh phases, {ends_text(phases)}"
    if phases.may_miss_refresh:
        told += "; too few to know how well"
    return f"{text} {width_text(phases)} ({told})"


_PARTS = {  # of the critical path, in words and as a colour
    "dispatch": ("dispatch from the host", "#94a3b8"),
    "issue": ("issue by the PE's CPU and scheduler", "#64748b"),
    "translation": ("address translation", "#a16207"),
    "memory_read": ("memory reads", "#2563eb"),
    "memory_write": ("memory writes", "#0891b2"),
    "refresh": ("refresh of the memory", "#7c3aed"),
    "link_queueing": ("queueing in front of links", "#dc2626"),
    "tcm_port": ("the ports of the TCM", "#65a30d"),
    "gemm": ("the GEMM unit", "#16a34a"),
    "vector": ("the vector unit", "#ca8a04"),
    "message": ("messages on their way", "#db2777"),
    "message_wait": ("waiting for messages", "#f472b6"),
    "execution": ("execution, not told apart", "#334155"),
    "completion": ("completion back to the host", "#cbd5e1"),
    "host_transfer": ("transfers of the host", "#ea580c"),
    "other": ("something else", "#0f172a"),
}
PART_WORDS = {name: words for name, (words, _) in _PARTS.items()}
PART_COLOURS = {name: colour for name, (_, colour) in _PARTS.items()}

_UNITS = {  # in words, and in short
    "gemm": ("the GEMM unit of", "GEMM"),
    "vector": ("the vector unit of", "vector"),
    "cpu": ("the CPU of", "PE CPU"),
    "sram": ("the SRAM of", "unit"),
    "tcm.read": ("the read port of the TCM of", "TCM port"),
    "tcm.write": ("the write port of the TCM of", "TCM port"),
}


def bottleneck_words(found: Bottleneck | None) -> str:
    if found is None:
        return "none: no time passed"
    share = share_text(found.share)
    match found.kind:
        case "part":
            return f"{PART_WORDS[found.name]}: {share} of the time, on the critical path"
        case "memory" if found.name.endswith(".sram"):
            return f"{_unit_words(found.name)}: in use {share} of the time"
        case "memory":
            return f"the HBM behind {found.name}: in use {share} of the time, refresh included"
        case "link":
            return f"the link {found.name}: in use {share} of the time"
        case "unit":
            return f"{_unit_words(found.name)}: in use {share} of the time"


def _unit_words(name: str) -> str:
    for unit, (words, _) in _UNITS.items():
        if name.endswith(f".{unit}"):
            return f"{words} {name.removesuffix(f'.{unit}')}"
    return name


def short_latency(latency_ps: int) -> str:
    """Three figures are enough to compare.

    >>> short_latency(307_218_542), short_latency(1_234_567), short_latency(0)
    ('307 us', '1.23 us', '0 ps')
    """
    rounding = 10 ** max(0, len(str(latency_ps)) - 3)
    return format_ps((latency_ps + rounding // 2) // rounding * rounding)


def short_bytes(num_bytes: int) -> str:
    """Two or three figures are enough to compare.

    >>> short_bytes(8_589_934_592), short_bytes(157_286_400), short_bytes(1000)
    ('8.0 GiB', '150 MiB', '1000 B')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        amount = num_bytes / 2**power
        if amount >= 1:
            return f"{amount:.{1 if amount < 10 else 0}f} {unit}"
    return format_bytes(num_bytes)


def short_bottleneck(found: Bottleneck | None) -> str:
    """What had the greatest share, without its place.

    >>> short_bottleneck(Bottleneck(kind="memory", name="sip0.cube0.hbm_ctrl.pe3", share=0.93))
    'HBM 93 %'
    >>> short_bottleneck(Bottleneck(kind="part", name="memory_read", share=0.5))
    'memory read 50 %'
    """
    if found is None:
        return "none"
    return f"{_what(found)} {share_text(found.share)}"


def _what(found: Bottleneck) -> str:
    match found.kind:
        case "part":
            return found.name.replace("_", " ")
        case "memory":
            return "HBM"
        case "link":
            return "link"
        case "unit":
            names = (
                short for unit, (_, short) in _UNITS.items() if found.name.endswith(f".{unit}")
            )
            return next(names, "unit")
