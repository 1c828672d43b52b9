"""Figures of a machine in the words and units that people read."""

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
from tilewright.units import PS_PER_US, count_text, format_rate


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
