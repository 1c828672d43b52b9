"""Random topologies: a machine with the counts and rates of the mapping, or every wrong key named.

The expected machine is computed here, from the drawn numbers and the reference's table of keys.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.interop.kernbench.topology import Topology, resolve_topology
from tilewright.interop.kernbench.topology.keys import KEYS, SECTIONS
from tilewright.machine import MachineSpec, parse_machine_text

PE = "cube.pe_template.components"

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class Case:
    """A mapping, the fields that it sets, and the keys that are wrong in it."""

    mapping: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, object] = field(default_factory=dict)
    wrong: set[str] = field(default_factory=set)

    def put(self, path: str, value: object) -> None:
        *sections, name = path.split(".")
        section = self.mapping
        for one in sections:
            section = section.setdefault(one, {})
        section[name] = value


def decimals(most: int) -> st.SearchStrategy[float]:
    """Numbers with up to three decimals, as a file has them."""
    return st.integers(1, most * 1000).map(lambda thousandths: float(Decimal(thousandths) / 1000))


def thousandths(number: float) -> int:
    return int((Decimal(repr(number)) * 1000).to_integral_exact())


# key, values, fields that it sets, from a value to the field's
SCALED: tuple[tuple[str, st.SearchStrategy[Any], str, Callable[[Any], int]], ...] = (
    ("system.ns_per_mm", decimals(2), "ps_per_mm", thousandths),
    ("cube.links.hbm_to_router_bw_gbs", decimals(512), "cube.noc.attach_bytes_per_us", thousandths),
    ("links.sram_to_router.bw_gbs", decimals(512), "cube.sram.bytes_per_us", thousandths),
    ("cube.links.router_to_router.bw_gbs", decimals(512), "cube.noc.bytes_per_us", thousandths),
    ("cube.links.router_to_router.distance_mm", decimals(9), "cube.noc.pitch_um", thousandths),
    ("sip.links.ucie_bw_gbs", decimals(512), "cube.ucie.bytes_per_us", thousandths),
    ("cube.components.ucie.attrs.overhead_ns", decimals(20), "cube.ucie.side_ps", thousandths),
    ("cube.components.router.attrs.overhead_ns", decimals(9), "cube.noc.router_ps", thousandths),
    (
        "sip.io_chiplet.components.io_cpu.attrs.overhead_ns",
        decimals(20),
        "sip.io_cpu.command_ps",
        thousandths,
    ),
    (f"{PE}.pe_cpu.attrs.overhead_ns", decimals(9), "pe.cpu.command_ps", thousandths),
    (
        f"{PE}.pe_tcm.attrs.read_bw_gbs",
        decimals(900),
        "pe.tcm.read_bytes_per_us",
        thousandths,
    ),
    (
        f"{PE}.pe_tcm.attrs.size_mb",
        st.integers(5, 64),
        "pe.tcm.capacity_bytes",
        lambda mb: mb * 1024 * 1024,
    ),
    (
        f"{PE}.pe_mmu.attrs.page_size",
        st.sampled_from([4096, 65536, 2097152]),
        "pe.mmu.page_bytes",
        lambda size: size,
    ),
    (
        "cube.memory_map.hbm_total_gb_per_cube",
        st.sampled_from([12, 24, 36, 48, 96]),
        "cube.hbm.capacity_bytes",
        lambda gb: gb * 1024**3,
    ),
    (f"{PE}.pe_gemm.attrs.mac_k", st.integers(1, 64), "pe.gemm.depth", lambda side: side),
)

WRONG: tuple[tuple[str, object], ...] = (
    ("system.sips.cout", 2),
    ("system.rack", {"count": 2}),
    ("sip.cube_mesh.d", 2),
    ("cube.geometry", {"cube_mm": 12}),
    ("cube.memory_map.hbm_total_gb_per_cub", 48),
    ("cube.components.dsp", {"attrs": {"overhead_ns": 1}}),
    ("cube.components.sram.impl", "custom.mine"),
    ("cube.links.noc_bw_gbs", 256),
    ("cube.links.m_cpu_to_router.latency_ns", 1),
    ("cube.components.m_cpu.attrs.overhead_ns", "5 ns"),
    ("cube.components.m_cpu.attrs.clock", 1),
    (f"{PE}.pe_gemm.attrs.port_a_bw", 512),
    (f"{PE}.pe_scheduler.attrs.overhead_ns", 0),
    (f"{PE}.pe_dma.attrs.rd_engines", 1.5),
    (f"{PE}.pe_math.attrs.overhead_ns", 3),
    (f"{PE}.pe_npu", {}),
    ("sip.io_chiplet.count", 2),
)


@st.composite
def cases(draw: Draw) -> Case:
    case = Case()
    sips, columns, rows = (draw(st.integers(1, most)) for most in (3, 3, 2))
    per_corner = draw(st.sampled_from([1, 2, 3, 4, 6]))
    case.put("system.sips", {"count": sips, "cubes_per_sip": columns * rows})
    case.put("sip.cube_mesh", {"w": columns, "h": rows})
    case.put("cube.pe_layout.pe_per_corner", per_corner)
    case.put("cube.memory_map.hbm_slices_per_cube", 4 * per_corner)
    case.fields |= {"sip.count": sips, "sip.columns": columns, "sip.rows": rows}
    case.fields |= {"cube.pes": 4 * per_corner, "cube.hbm.pseudo_channels": 32 * per_corner}
    case.fields["pe.mmu.page_bytes"] = 4096
    for key, values, name, convert in draw(st.lists(st.sampled_from(SCALED), unique=True)):
        value = draw(values)
        case.put(key, value)
        case.fields[name] = convert(value)
    if draw(st.booleans()):
        for key, value in draw(st.lists(st.sampled_from(WRONG), max_size=4, unique_by=str)):
            case.put(key, copy.deepcopy(value))
            case.wrong.add(key)
        if draw(st.booleans()):
            case.put("system.sips.cubes_per_sip", columns * rows + 1)
            case.wrong.add("system.sips.cubes_per_sip")
    return case


def value_at(spec: MachineSpec, name: str) -> object:
    value: object = spec
    for part in name.split("."):
        value = getattr(value, part)
    return value


def keys_of_problems(error: SpecError) -> set[str]:
    return {problem.where.split(": ", 1)[1].split(", here ")[0] for problem in error.problems}


def result_of(source: object) -> Topology | SpecError:
    try:
        return resolve_topology(source)  # type: ignore[arg-type]
    except SpecError as error:
        return error


@given(case=cases())
def test_a_machine_has_the_values_of_its_topology_or_every_wrong_key_is_named(case: Case) -> None:
    given_mapping = copy.deepcopy(case.mapping)
    result = result_of(case.mapping)
    assert case.mapping == given_mapping
    if isinstance(result, SpecError):
        assert keys_of_problems(result) == case.wrong
        assert case.wrong
        return
    assert not case.wrong
    spec, grid = result.machine.spec, result.machine.grid
    assert {name: value_at(spec, name) for name in case.fields} == case.fields
    assert (grid.num_sips, grid.columns, grid.rows, grid.num_pes_per_cube) == tuple(
        case.fields[name] for name in ("sip.count", "sip.columns", "sip.rows", "cube.pes")
    )
    assert parse_machine_text(result.text) == spec


JUNK = st.one_of(
    st.none() | st.booleans() | st.text(max_size=5) | st.dates() | st.binary(max_size=3),
    st.integers(-5, 5)
    | st.integers()
    | st.sampled_from([10**17, 10**400, -(10**9000)])
    | st.floats(),
    st.lists(st.floats() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3) | st.integers(), st.none(), min_size=1, max_size=2),
)


@given(path=st.sampled_from([path for path in (*KEYS, *SECTIONS) if path]), value=JUNK)
def test_any_value_of_a_known_key_is_taken_or_refused_by_that_key(
    path: tuple[str, ...], value: object
) -> None:
    case = Case()
    case.put(".".join(path), value)
    result = result_of(case.mapping)
    if isinstance(result, SpecError):
        assert all(key.startswith(".".join(path)) for key in keys_of_problems(result))


@settings(max_examples=10)  # each reads four topologies
@given(case=cases())
def test_yaml_json_and_a_mapping_are_one_topology_and_give_the_same_bytes(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("topologies")
    (folder / "topology.yaml").write_text(yaml.safe_dump(case.mapping))
    (folder / "topology.json").write_text(json.dumps(case.mapping, indent="\t"))
    sources = (case.mapping, folder / "topology.yaml", folder / "topology.json")
    texts = [text_of(source) for source in sources]
    assert text_of(case.mapping) == texts[0]
    # the name of the file stands in its first lines
    assert len({text.replace(".yaml", "").replace(".json", "") for text in texts}) == 1


def text_of(source: object) -> str:
    result = result_of(source)
    if isinstance(result, SpecError):
        return str(sorted(keys_of_problems(result)))
    return result.text
