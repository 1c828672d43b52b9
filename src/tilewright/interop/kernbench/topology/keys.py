"""Every key of a KernBench topology that is known here, and what becomes of it.

Public material names the keys of counts, memory map and PE template, and the attributes of most
components. Where it names none (links other than ``hbm_to_router``, the IO chiplet's section), the
names here are our reading; a file with other names is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from tilewright.interop.kernbench.topology.document import KeyPath


@dataclass(frozen=True, slots=True)
class Unit:
    """How a number of a topology becomes an integer of a machine: times ``factor``, exactly."""

    factor: int
    expected: str  # what an error says of a number that is not whole then


GB_PER_S = Unit(1_000, "GB/s with at most three decimals")  # bytes per us
NS = Unit(1_000, "ns with at most three decimals")  # ps
MM = Unit(1_000, "mm with at most three decimals")  # um
NS_PER_MM = Unit(1_000, "ns per mm with at most three decimals")  # ps per mm
GHZ = Unit(10**9, "GHz with at most nine decimals")  # Hz
GIB = Unit(2**30, "GiB that are whole bytes")
MIB = Unit(2**20, "MiB that are whole bytes")
BYTES = Unit(1, "a whole number of bytes")
SHARE = Unit(100, "a share with at most two decimals")  # percent
COUNT = Unit(1, "a whole number")


@dataclass(frozen=True, slots=True)
class Sets:
    """A number, or a pair of them (x and y), that is a field of the machine."""

    field: str
    unit: Unit
    is_pair: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number of at least 1 that a rule reads (``rules``)."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of at least 0 that a rule reads."""


@dataclass(frozen=True, slots=True)
class Names:
    """A word, or a list of words, that a rule reads."""

    choices: tuple[str, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Must:
    """A number that only one value is right for: what the machine has anyway."""

    value: Fraction
    fix: str


@dataclass(frozen=True, slots=True)
class Builtin:
    """The name of an implementation: one of KernBench's own has no effect, another is refused."""


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A key that is accepted and listed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A known key that nothing here corresponds to."""

    fix: str


Fate = Sets | Count | Number | Names | Must | Builtin | WithoutEffect | Refused

CORNERS = ("NW", "NE", "SW", "SE")
SIP_TOPOLOGIES: Mapping[str, str] = MappingProxyType(
    {"ring_1d": "ring", "torus_2d": "torus", "mesh_2d_no_wrap": "mesh"}
)

_ATTACH = Sets("cube.noc.attach_bytes_per_us", GB_PER_S), Sets("cube.attach_um", MM)
_DIE_TO_DIE = Sets("cube.ucie.bytes_per_us", GB_PER_S), Sets("cube.ucie.length_um", MM)
_FABRIC = Sets("fabric.bytes_per_us", GB_PER_S), Number()
_PCIE_RATE = Refused("set host.pcie.generation and host.pcie.lanes in the machine file instead")

LINKS: Mapping[str, tuple[Fate, Fate]] = MappingProxyType(
    {
        "pe_to_router": _ATTACH,
        "pe_dma_to_router": _ATTACH,
        "hbm_to_router": _ATTACH,
        "m_cpu_to_router": _ATTACH,
        "sram_to_router": (Sets("cube.sram.bytes_per_us", GB_PER_S), _ATTACH[1]),
        "router_to_router": (
            Sets("cube.noc.bytes_per_us", GB_PER_S),
            Sets("cube.noc.pitch_um", MM),
        ),
        "router_to_ucie": (Sets("cube.noc.bytes_per_us", GB_PER_S), _ATTACH[1]),
        "ucie": _DIE_TO_DIE,
        "io_ucie": _DIE_TO_DIE,
        "io_cpu_to_io_noc": (Sets("sip.io.attach_bytes_per_us", GB_PER_S), _ATTACH[1]),
        "pcie": (_PCIE_RATE, Sets("host.pcie.length_um", MM)),
        "sip_to_sip": _FABRIC,
        "sip_to_switch": _FABRIC,
    }
)
"""By kind of link: its rate and its length."""

_LINK_SECTIONS: tuple[KeyPath, ...] = (
    ("links",),
    ("system", "links"),
    ("sip", "links"),
    ("sip", "io_chiplet", "links"),
    ("cube", "links"),
)

_DRAWING = WithoutEffect("the layout here follows from the counts")
_NO_OVERHEAD = Must(Fraction(0), "it adds no time here; add it to pe.scheduler.command_ps instead")
_PORT = Refused("the unit uses the TCM's ports here: state read_bw_gbs and write_bw_gbs of pe_tcm")
_TILE = Refused("a composite states its own tile here: tl.composite(..., tile_shape=(m, n, k))")
_HBM_RATE = "the rate follows from cube.hbm.burst_bytes and cube.hbm.timing: set them instead"
_TURNAROUND = "the turnaround follows from cube.hbm.timing (rtw, wtr): set it instead"
_HBM_OVERHEAD = "the latency follows from cube.hbm.timing: set it instead"
_UCIE: Mapping[str, Fate] = {
    "overhead_ns": Sets("cube.ucie.side_ps", NS),
    "connections": Sets("cube.ucie.connections", COUNT),
}

_IO: KeyPath = ("sip", "io_chiplet", "components")
_CUBE: KeyPath = ("cube", "components")
_PE: KeyPath = ("cube", "pe_template", "components")

_ATTRIBUTES: Mapping[KeyPath, Mapping[str, Fate]] = MappingProxyType(
    {
        ("system", "components", "switch"): {"overhead_ns": Sets("fabric.switch_ps", NS)},
        (*_IO, "pcie_ep"): {"overhead_ns": Sets("host.pcie.endpoint_ps", NS)},
        (*_IO, "io_cpu"): {"overhead_ns": Sets("sip.io_cpu.command_ps", NS)},
        (*_IO, "io_noc"): {"overhead_ns": Sets("sip.io.noc_ps", NS)},
        (*_IO, "io_ucie"): _UCIE,
        (*_CUBE, "router"): {"overhead_ns": Sets("cube.noc.router_ps", NS)},
        (*_CUBE, "ucie"): _UCIE,
        (*_CUBE, "m_cpu"): {"overhead_ns": Sets("cube.m_cpu.command_ps", NS)},
        (*_CUBE, "sram"): {
            "overhead_ns": Sets("cube.sram.access_ps", NS),
            "size_mb": Sets("cube.sram.capacity_bytes", MIB),
        },
        (*_CUBE, "hbm_ctrl"): {
            "overhead_ns": Must(Fraction(0), _HBM_OVERHEAD),
            "num_pcs": Count(),
            "pc_bw_gbs": Must(Fraction(32), _HBM_RATE),
            "burst_bytes": Sets("cube.hbm.interleave_bytes", BYTES),
            "switch_penalty_ns": Must(Fraction(0), _TURNAROUND),
            "efficiency": Sets("cube.hbm.simple_efficiency_percent", SHARE),
        },
        (*_PE, "pe_cpu"): {"overhead_ns": Sets("pe.cpu.command_ps", NS)},
        (*_PE, "pe_scheduler"): {
            "overhead_ns": Sets("pe.scheduler.command_ps", NS),
            "tile_m": _TILE,
            "tile_k": _TILE,
            "tile_n": _TILE,
        },
        (*_PE, "pe_dma"): {
            "overhead_ns": _NO_OVERHEAD,
            "rd_engines": Sets("pe.dma.read_channels", COUNT),
            "wr_engines": Sets("pe.dma.write_channels", COUNT),
        },
        (*_PE, "pe_fetch_store"): {"overhead_ns": _NO_OVERHEAD},
        (*_PE, "pe_gemm"): {
            "overhead_ns": _NO_OVERHEAD,
            "mac_m": Sets("pe.gemm.rows", COUNT),
            "mac_n": Sets("pe.gemm.columns", COUNT),
            "mac_k": Sets("pe.gemm.depth", COUNT),
            "clock_freq_ghz": Sets("pe.gemm.hz", GHZ),
            "peak_tflops_f16": Number(),
            "port_a_bw": _PORT,
            "port_b_bw": _PORT,
            "store_port_bw": _PORT,
            "bytes_per_element": Refused("times follow from the operands' dtypes here: remove it"),
        },
        (*_PE, "pe_math"): {
            "overhead_ns": _NO_OVERHEAD,
            "vector_width": Sets("pe.vector.lanes", COUNT),
            "clock_freq_ghz": Sets("pe.vector.hz", GHZ),
        },
        (*_PE, "pe_mmu"): {
            "overhead_ns": Sets("pe.mmu.hit_ps", NS),
            "tlb_overhead_ns": Sets("pe.mmu.hit_ps", NS),
            "page_size": Sets("pe.mmu.page_bytes", BYTES),
        },
        (*_PE, "pe_tcm"): {
            "overhead_ns": _NO_OVERHEAD,
            "size_mb": Sets("pe.tcm.capacity_bytes", MIB),
            "read_bw_gbs": Sets("pe.tcm.read_bytes_per_us", GB_PER_S),
            "write_bw_gbs": Sets("pe.tcm.write_bytes_per_us", GB_PER_S),
        },
        (*_PE, "pe_ipcq"): {"overhead_ns": _NO_OVERHEAD},
    }
)

_POSITIONS: Mapping[KeyPath, Fate] = MappingProxyType(
    {
        (*_CUBE, "m_cpu"): Sets("cube.m_cpu_position_um", MM, is_pair=True),
        (*_CUBE, "sram"): Sets("cube.sram_position_um", MM, is_pair=True),
    }
)

_PLAIN: Mapping[KeyPath, Fate] = MappingProxyType(
    {
        ("system", "sips", "count"): Count(),
        ("system", "sips", "cubes_per_sip"): Count(),
        ("system", "sips", "topology"): Names(tuple(SIP_TOPOLOGIES)),
        ("system", "sips", "w"): Count(),
        ("system", "sips", "h"): Count(),
        ("system", "ns_per_mm"): Sets("ps_per_mm", NS_PER_MM),
        ("sip", "cube_mesh", "w"): Count(),
        ("sip", "cube_mesh", "h"): Count(),
        ("sip", "io_chiplet", "count"): Must(
            Fraction(1), "a SIP has one IO chiplet here: give its links the rate of them all"
        ),
        ("cube", "pe_layout", "corners"): Names(CORNERS, is_list=True),
        ("cube", "pe_layout", "pe_per_corner"): Count(),
        ("cube", "memory_map", "hbm_total_gb_per_cube"): Sets("cube.hbm.capacity_bytes", GIB),
        ("cube", "memory_map", "hbm_slices_per_cube"): Count(),
        ("cube", "memory_map", "hbm_pseudo_channels"): Count(),
        ("cube", "pe_template", "links"): Refused(
            "hand-offs inside a PE take no time here: state the TCM's rates in pe_tcm"
        ),
    }
)


def key_text(path: KeyPath) -> str:
    """Write a path as errors and comments show it.

    >>> key_text(("cube", "memory_map"))
    'cube.memory_map'
    """
    return ".".join(path)


def _component_keys() -> Iterator[tuple[KeyPath, Fate]]:
    for component, attributes in _ATTRIBUTES.items():
        yield (*component, "kind"), WithoutEffect("the name of a component says it")
        yield (*component, "impl"), Builtin()
        yield (*component, "pos_mm"), _POSITIONS.get(component, _DRAWING)
        for name, fate in attributes.items():
            yield (*component, "attrs", name), fate


def _link_keys() -> Iterator[tuple[KeyPath, Fate]]:
    for section in _LINK_SECTIONS:
        for kind, (rate, length) in LINKS.items():
            yield (*section, kind, "bw_gbs"), rate
            yield (*section, kind, "distance_mm"), length
            yield (*section, f"{kind}_bw_gbs"), rate
            yield (*section, f"{kind}_distance_mm"), length


KEYS: Mapping[KeyPath, Fate] = MappingProxyType(
    dict(_PLAIN) | dict(_component_keys()) | dict(_link_keys())
)
"""What becomes of each key that is known."""


def _sections() -> Iterator[tuple[KeyPath, tuple[str, ...]]]:
    children: dict[KeyPath, dict[str, None]] = {}
    for path in KEYS:
        for length, name in enumerate(path):
            children.setdefault(path[:length], {})[name] = None
    for section, names in children.items():
        yield section, tuple(names)


SECTIONS: Mapping[KeyPath, tuple[str, ...]] = MappingProxyType(dict(_sections()))
"""The keys that a section may have; the root's path is empty."""
