"""What a topology becomes: fields, counts, defaults, refusals, a machine that runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright.errors import SpecError
from tilewright.host import DPPolicy, LocalShard, RuntimeContext
from tilewright.interop.kernbench.topology import Topology, load_topology, resolve_topology
from tilewright.machine import MachineSpec, parse_machine, parse_machine_text
from tilewright.machine.check import check_machine_file
from tilewright.machine.totals import totals_of

DEFAULT = Path(__file__).parent / "default.yaml"
PE = "cube.pe_template.components."


def nested(**keys: object) -> dict[str, Any]:
    """Make a mapping of keys whose dots are written as two underscores."""
    root: dict[str, Any] = {}
    for key, value in keys.items():
        *sections, name = key.split("__")
        section = root
        for one in sections:
            section = section.setdefault(one, {})
        section[name] = value
    return root


def spec_of_keys(**keys: object) -> MachineSpec:
    return resolve_topology(nested(**keys)).machine.spec


def problems_of(**keys: object) -> list[str]:
    with pytest.raises(SpecError) as caught:
        resolve_topology(nested(**keys))
    return [str(problem) for problem in caught.value.problems]


def test_default_values_have_the_counts_of_ahbm() -> None:
    imported, ahbm = resolve_topology(DEFAULT).machine, parse_machine("ahbm")
    assert imported.spec.sip.count == ahbm.sip.count == 2
    assert (imported.grid.num_cubes_per_sip, imported.grid.num_pes_per_cube) == (16, 8)
    totals = totals_of(imported)
    assert (totals.num_pes, totals.hbm_bytes, totals.hbm_bytes_per_us) == (
        2 * 16 * 8,
        2 * 16 * 48 * 2**30,
        2 * 16 * 8 * 8 * 32_000,
    )
    assert totals.f16_flop_per_s == 256 * 8_000_000_000_000


def flat(value: object, path: str = "") -> dict[str, object]:
    if not isinstance(value, dict):
        return {path: value}
    below = (flat(one, f"{path}.{key}" if path else key) for key, one in value.items())
    return {key: one for part in below for key, one in part.items()}


def test_default_values_differ_from_ahbm_in_six_fields_alone() -> None:
    imported = flat(resolve_topology(DEFAULT).machine.spec.model_dump())
    ahbm = flat(parse_machine("ahbm").model_dump())
    changed = {field: value for field, value in imported.items() if ahbm[field] != value}
    assert changed == {
        "name": "default",
        "description": "imported from the KernBench topology default.yaml",
        "fabric.switch_ps": 0,
        "sip.io.noc_ps": 0,
        "cube.noc.router_ps": 0,
        "cube.sram.access_ps": 0,
        "pe.gemm.hz": 976_562_500,
        "pe.mmu.page_bytes": 4096,
    }


def test_the_machine_file_reads_back_as_the_same_machine_without_warnings(tmp_path: Path) -> None:
    topology = resolve_topology(DEFAULT)
    file = tmp_path / "imported.yaml"
    file.write_text(topology.text)
    assert parse_machine(file) == topology.machine.spec
    record = check_machine_file(file)
    assert (record.machine, record.num_pes, record.warnings) == ("default", 256, ())


def test_absent_keys_have_the_defaults_of_kernbench() -> None:
    topology = resolve_topology({})
    spec = topology.machine.spec
    assert (spec.sip.count, spec.sip.columns, spec.sip.rows, spec.cube.pes) == (1, 4, 4, 8)
    assert (spec.ps_per_mm, spec.cube.hbm.capacity_bytes) == (10, 48 * 2**30)
    assert (spec.pe.tcm.capacity_bytes, spec.pe.mmu.page_bytes) == (16 * 2**20, 4096)
    defaults = {one.field for one in topology.settings if one.is_default}
    assert defaults == {"sip.count", "pe.mmu.page_bytes"}
    assert "system.sips.count is absent: KernBench's default" in topology.text


def test_a_default_is_told_by_the_key_that_is_absent() -> None:
    counts = {"cube__pe_layout__pe_per_corner": 1, "cube__memory_map__hbm_slices_per_cube": 4}
    settings = {one.field: one for one in resolve_topology(nested(**counts)).settings}
    pes, channels = settings["cube.pes"], settings["cube.hbm.pseudo_channels"]
    assert (pes.value, pes.is_default, pes.key[-1]) == (4, False, "pe_per_corner")
    assert (channels.value, channels.is_default, channels.key[-1]) == (32, True, "num_pcs")


def test_rates_are_decimal_and_sizes_are_binary() -> None:
    spec = spec_of_keys(
        cube__links__hbm_to_router_bw_gbs=204.8,
        cube__links__ucie={"bw_gbs": 64, "distance_mm": 0.5},
        cube__memory_map__hbm_total_gb_per_cube=24,
        cube__pe_template__components__pe_tcm__attrs__size_mb=8,
        cube__pe_template__components__pe_mmu__attrs__page_size=2 * 2**20,
    )
    assert spec.cube.noc.attach_bytes_per_us == 204_800
    assert spec.cube.ucie is not None
    assert (spec.cube.ucie.bytes_per_us, spec.cube.ucie.length_um) == (64_000, 500)
    assert spec.cube.hbm.capacity_bytes == 24 * 2**30
    assert (spec.pe.tcm.capacity_bytes, spec.pe.mmu.page_bytes) == (8 * 2**20, 2 * 2**20)


def test_positions_of_m_cpu_and_sram_move_them_and_others_are_listed() -> None:
    topology = resolve_topology(
        nested(
            cube__components__m_cpu__pos_mm=[1.5, 2.0],
            cube__components__sram__pos_mm=[1.5, 4.25],
            cube__components__ucie__pos_mm=[0, 0],
        )
    )
    assert topology.machine.spec.cube.m_cpu_position_um == (1500, 2000)
    assert topology.machine.spec.cube.sram_position_um == (1500, 4250)
    assert list(topology.without_effect) == ["cube.components.ucie.pos_mm"]
    assert "#   cube.components.ucie.pos_mm" in topology.text


@pytest.mark.parametrize(
    ("keys", "kind", "columns"),
    [
        ({}, "switch", None),
        ({"topology": "ring_1d"}, "ring", None),
        ({"topology": "torus_2d", "w": 3, "h": 2}, "torus", 3),
        ({"topology": "mesh_2d_no_wrap", "w": 2, "h": 3}, "mesh", 2),
        ({"topology": "torus_2d", "count": 4}, "torus", 2),
    ],
)
def test_the_exchange_topology_is_the_fabric(
    keys: dict[str, Any], kind: str, columns: int | None
) -> None:
    spec = resolve_topology({"system": {"sips": {"count": 6} | keys}}).machine.spec
    assert (spec.fabric.kind, spec.fabric.columns) == (kind, columns)


def test_one_sip_has_no_fabric_and_its_keys_are_listed() -> None:
    topology = resolve_topology(
        nested(system__sips__topology="ring_1d", system__links__sip_to_sip_bw_gbs=64)
    )
    assert topology.machine.spec.fabric == parse_machine("ahbm").fabric
    assert topology.without_effect == {
        "system.links.sip_to_sip_bw_gbs": "there is one SIP",
        "system.sips.topology": "there is one SIP",
    }


def test_a_link_between_sips_has_the_delay_of_its_length() -> None:
    spec = spec_of_keys(
        system__sips__count=2,
        system__ns_per_mm=0.005,
        links__sip_to_sip={"bw_gbs": 64, "distance_mm": 100},
    )
    assert (spec.fabric.bytes_per_us, spec.fabric.latency_ps) == (64_000, 500)


def test_the_channels_of_a_slice_stay_with_its_pe() -> None:
    spec = spec_of_keys(cube__pe_layout__pe_per_corner=1, cube__memory_map__hbm_slices_per_cube=4)
    assert (spec.cube.pes, spec.cube.hbm.pseudo_channels) == (4, 32)
    spec = spec_of_keys(cube__components__hbm_ctrl__attrs={"num_pcs": 4, "burst_bytes": 128})
    assert (spec.cube.hbm.pseudo_channels, spec.cube.hbm.interleave_bytes) == (32, 128)


def test_more_pes_than_routers_enlarge_the_mesh() -> None:
    topology = resolve_topology(
        nested(cube__pe_layout__pe_per_corner=8, cube__memory_map__hbm_slices_per_cube=32)
    )
    noc = parse_machine_text(topology.text).cube.noc
    assert topology.machine.grid.num_pes_per_cube == 32
    assert noc == topology.machine.spec.cube.noc
    # 6 x 6 routers beside the hole of 2 x 2 are the least even square for 32 PEs
    assert (getattr(noc, "rows", 0), getattr(noc, "columns", 0)) == (8, 8)


def test_an_efficiency_chooses_the_memory_that_has_one() -> None:
    spec = spec_of_keys(cube__components__hbm_ctrl__attrs__efficiency=0.8)
    assert (spec.cube.hbm.model, spec.cube.hbm.simple_efficiency_percent) == ("simple", 80)
    assert spec_of_keys().cube.hbm.model == "detailed"


def test_a_peak_is_reached_by_the_clock_of_the_array() -> None:
    attrs = {"peak_tflops_f16": 4.096, "mac_m": 8, "mac_n": 16, "mac_k": 16}
    spec = spec_of_keys(cube__pe_template__components__pe_gemm__attrs=attrs)
    assert spec.pe.gemm.hz == 10**9


@pytest.mark.parametrize(
    ("keys", "where", "words"),
    [
        (
            {"system__sips__cubes_per_sip": 8},
            "topology: system.sips.cubes_per_sip",
            "4 x 4 cubes in sip.cube_mesh",
        ),
        (
            {"sip__cube_mesh": {"w": 2, "h": 2}},
            "topology: sip.cube_mesh.w",
            "write system.sips.cubes_per_sip: 4",
        ),
        (
            {"cube__memory_map__hbm_slices_per_cube": 16},
            "topology: cube.memory_map.hbm_slices_per_cube",
            "8 PEs in cube.pe_layout",
        ),
        (
            {"cube__pe_layout__pe_per_corner": 4},
            "topology: cube.pe_layout.pe_per_corner",
            "write cube.memory_map.hbm_slices_per_cube: 16",
        ),
        (
            {"system__sips": {"count": 6, "w": 2, "h": 2}},
            "topology: system.sips.w",
            "2 x 2 SIPs, but system.sips.count is 6",
        ),
        ({"system__sips": {"count": 6, "w": 3}}, "topology: system.sips.w", "system.sips.h too"),
        (
            {"system__sips": {"count": 6, "topology": "torus_2d"}},
            "topology: system.sips.topology",
            "write system.sips.w and system.sips.h",
        ),
        (
            {"cube__links": {"pe_to_router_bw_gbs": 256, "hbm_to_router": {"bw_gbs": 128}}},
            "topology: cube.links.hbm_to_router.bw_gbs",
            "while cube.links.pe_to_router_bw_gbs gives 256 GB/s",
        ),
        (
            {
                "cube__memory_map__hbm_pseudo_channels": 32,
                "cube__components__hbm_ctrl__attrs__num_pcs": 8,
            },
            "topology: cube.components.hbm_ctrl.attrs.num_pcs",
            "cube.memory_map.hbm_pseudo_channels gives 32",
        ),
        (
            {PE.replace(".", "__") + "pe_gemm__attrs": {"peak_tflops_f16": 4, "clock_freq_ghz": 1}},
            f"topology: {PE}pe_gemm.attrs.peak_tflops_f16",
            "one value: both are pe.gemm.hz",
        ),
    ],
)
def test_contradictions_are_refused(keys: dict[str, Any], where: str, words: str) -> None:
    [problem] = problems_of(**keys)
    assert problem.startswith(where)
    assert words in problem


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"system__sips__cont": 2}, "did you mean 'count'?"),
        ({"cube__components__io_cpu": {}}, "did you mean 'sip.io_chiplet.components.io_cpu'?"),
        ({"cube__geometry": {"w": 17, "h": 14}}, "remove it, and set what it means"),
        ({"cube__components__sram__impl": "custom.sram"}, "write it as a block of ours"),
        ({"cube__pe_template__links": {"a": 1}}, "hand-offs inside a PE take no time"),
        ({"system__links__pcie_bw_gbs": 64}, "set host.pcie.generation"),
        ({"sip__io_chiplet__count": 2}, "a SIP has one IO chiplet here"),
        ({"cube__components__hbm_ctrl__attrs__pc_bw_gbs": 64}, "set them instead"),
        ({"cube__pe_layout__corners": ["NW", "NE"]}, "[NW, NE, SW, SE], in this order"),
        ({"system__sips__topology": "torus"}, "did you mean 'torus_2d'?"),
        ({"system__sips__topology": ["ring_1d"]}, "one of ring_1d, torus_2d"),
        ({"system__sips__count": 0}, "a whole number of at least 1"),
        ({"system__sips__count": 2.0}, "a whole number of at least 1"),
        ({"system__sips__count": True}, "a whole number of at least 1"),
        ({"system__sips__count": 20}, "at most 16"),
        ({"system__sips": None}, "found no value, expected a section"),
        ({"system__ns_per_mm": 0.0105}, "at most three decimals; round it"),
        ({"system__ns_per_mm": "0.01"}, "found '0.01', expected ns per mm"),
        ({"system__ns_per_mm": float("nan")}, "found nan"),
        ({"system__ns_per_mm": {}}, "found a section"),
        ({"cube__links__ucie_bw_gbs": -1}, "write no negative number"),
        ({"cube__links__ucie_bw_gbs": 0}, "here cube.ucie.bytes_per_us: found 0"),
        ({"cube__components__m_cpu__pos_mm": [1]}, "write them like [7.5, 2.0]"),
        ({"cube__memory_map__hbm_total_gb_per_cube": 200}, "here cube.hbm.capacity_bytes"),
        ({"cube__pe_template__components__pe_tcm__attrs__size_mb": 2}, "pe.tcm.reserved_bytes"),
        ({"cube__pe_template__components__pe_mmu__attrs__page_size": 3000}, "a power of two"),
        ({"cube__components__sram__attrs__size_mb": 2**16}, "here cube.sram.capacity_bytes"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_what_to_do(
    keys: dict[str, Any], words: str
) -> None:
    [problem] = problems_of(**keys)
    [path] = keys
    assert problem.startswith(f"topology: {path.replace('__', '.')}")
    assert words in problem


def test_a_key_with_a_dot_in_it_is_not_two_keys() -> None:
    with pytest.raises(SpecError, match="an unknown key"):
        resolve_topology({"system.sips": {"count": 2}})


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(SpecError, match="the key 1, which is no text"):
        resolve_topology({1: 2})  # type: ignore[dict-item]


def test_all_mistakes_are_told_in_the_order_of_lines(tmp_path: Path) -> None:
    text = (
        "system:\n  sips: {cont: 2}\n  racks: 1\n"
        "cube:\n  memory_map: {hbm_total_gb: 48}\n"
        "  pe_template: {components: {pe_cpu: {attrs: {overhead_ns: 0}}}}\n"
        "  links: {ucie_bw: 3}\n"
    )
    file = tmp_path / "topology.yaml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        resolve_topology(file)
    assert [problem.where.removeprefix(f"{file} ") for problem in caught.value.problems] == [
        "line 2: system.sips.cont",
        "line 3: system.racks",
        "line 5: cube.memory_map.hbm_total_gb",
        f"line 6: {PE}pe_cpu.attrs.overhead_ns, here pe.cpu.command_ps",
        "line 7: cube.links.ucie_bw",
    ]


def test_both_names_of_kernbench_give_the_topology_with_its_mapping() -> None:
    spec = {"system": {"sips": {"count": 2}}}
    topology = load_topology(spec)
    assert isinstance(topology, Topology)
    assert topology.spec == spec
    assert topology.topology_obj is topology
    assert resolve_topology(str(DEFAULT)).machine.spec == resolve_topology(DEFAULT).machine.spec


def test_an_imported_machine_computes() -> None:
    def double(source: object, target: object) -> None:
        tl.store(target, tl.load(source, shape=(16, 64)) * 2)

    spec = nested(
        system__sips={"count": 1, "cubes_per_sip": 2},
        sip__cube_mesh={"w": 2, "h": 1},
        cube__components__router__attrs__overhead_ns=0,
    )
    torch = RuntimeContext(resolve_topology(spec).machine)
    rows = DPPolicy(cube="row_wise", pe="row_wise")
    values = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
    source = torch.empty(values.shape, "f32", dp=rows).copy_(torch.from_numpy(values))
    target = torch.empty(values.shape, "f32", dp=rows)
    report = torch.launch(double, LocalShard(source), LocalShard(target)).report
    assert len(report.pes) == 16
    assert report.latency_ps > 0
    np.testing.assert_array_equal(target.numpy(), values * 2)
