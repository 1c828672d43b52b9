"""Every preset, and what makes each of them what it says it is."""

import re

import pytest

from tilewright.machine.build import build_machine
from tilewright.machine.check import check_machine_file
from tilewright.machine.parse import (
    DEFAULT_PRESET,
    parse_machine,
    parse_machine_text,
)
from tilewright.machine.presets import list_presets, preset_text
from tilewright.machine.spec import CrossbarSpec, MachineSpec, MeshSpec


def num_pes(spec: MachineSpec) -> int:
    return spec.sip.count * spec.sip.columns * spec.sip.rows * spec.cube.pes


def test_the_presets_are_these() -> None:
    expected = ("ahbm", "ahbm-6sip", "ahbm-8sip", "ahbm-small", "crossbar-chip", "hbm3")
    assert list_presets() == expected
    assert DEFAULT_PRESET in expected


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_is_a_machine_without_warnings_that_has_its_own_name(name: str) -> None:
    record = check_machine_file(name)
    assert record.machine == name
    assert record.warnings == ()
    assert record.num_pes == num_pes(parse_machine(name))


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_explains_itself_and_has_a_description(name: str) -> None:
    lines = preset_text(name).splitlines()
    comment = [line for line in lines if line.startswith("#")]
    assert lines[0].startswith(f"# {name}: ")
    assert len(" ".join(comment).split()) >= 25
    assert parse_machine(name).description


def test_ahbm_is_what_the_schema_says_without_a_file() -> None:
    spec = parse_machine()
    default = MachineSpec(description=spec.description)
    assert spec == default
    assert num_pes(spec) == 256


@pytest.mark.parametrize(("name", "sips", "columns"), [("ahbm-6sip", 6, 3), ("ahbm-8sip", 8, 4)])
def test_the_large_presets_are_ahbm_in_a_torus(name: str, sips: int, columns: int) -> None:
    spec = parse_machine(name)
    assert (spec.sip.count, spec.fabric.kind, spec.fabric.columns) == (sips, "torus", columns)
    assert num_pes(spec) == sips * 128
    assert (spec.cube, spec.pe) == (MachineSpec().cube, MachineSpec().pe)


def test_a_pe_of_ahbm_small_is_a_pe_of_ahbm() -> None:
    small, full = parse_machine("ahbm-small"), MachineSpec()
    assert num_pes(small) == 16
    assert small.pe == full.pe
    assert small.cube.pseudo_channels_per_slice == full.cube.pseudo_channels_per_slice
    assert small.cube.hbm.capacity_bytes // 4 == full.cube.hbm.capacity_bytes // 8
    assert isinstance(small.cube.noc, MeshSpec)
    assert (small.cube.noc.rows, small.cube.noc.hole_rows) == (4, 2)


def test_hbm3_changes_the_memory_and_nothing_else() -> None:
    spec, full = parse_machine("hbm3"), MachineSpec()
    assert spec.cube.hbm != full.cube.hbm
    cube = spec.cube.model_copy(update={"hbm": full.cube.hbm})
    names = {"name": full.name, "description": full.description}
    assert spec.model_copy(update={"cube": cube, **names}) == full


def test_hbm3_has_the_rates_and_latencies_of_the_standard() -> None:
    hbm = parse_machine("hbm3").cube.hbm
    timing = hbm.timing

    def ns(*clocks: int) -> float:
        return sum(clocks) * timing.clock_ps / 1000

    read = (timing.cl_clocks, timing.bl_clocks)
    assert ns(*read) == 13.75
    assert ns(timing.rcd_read_clocks, *read) == 33.125
    assert ns(timing.rp_clocks, timing.rcd_read_clocks, *read) == 49.375
    assert hbm.burst_bytes / ns(timing.ccd_s_clocks) == 25.6
    assert hbm.burst_bytes / ns(timing.ccd_l_clocks) == 12.8
    assert 4 * hbm.burst_bytes / ns(timing.faw_clocks) == pytest.approx(8.533, abs=1e-3)
    assert hbm.burst_bytes / ns(timing.rc_clocks) == pytest.approx(0.711, abs=1e-3)
    assert hbm.pseudo_channels * 25.6 == pytest.approx(819.2)
    closed = ns(timing.rtp_clocks, timing.rp_clocks, timing.rcd_read_clocks)
    lost = (closed + hbm.refresh.all_bank_ps / 1000) / (hbm.refresh.interval_ps / 1000)
    assert lost == pytest.approx(0.1003, abs=1e-4)


def test_hbm3_last_in_a_list_changes_the_memory_of_any_machine() -> None:
    spec = parse_machine_text("extends: [ahbm-8sip, hbm3]\nname: both")
    assert num_pes(spec) == 1024
    assert spec.cube.hbm == parse_machine("hbm3").cube.hbm


def test_crossbar_chip_is_one_die_around_a_switch() -> None:
    spec = parse_machine("crossbar-chip")
    assert (spec.sip.io, spec.cube.ucie, num_pes(spec)) == (None, None, 64)
    assert isinstance(spec.cube.noc, CrossbarSpec)
    names = [node.name for node in build_machine(spec).nodes]
    assert not [name for name in names if "ucie" in name or ".io0" in name]


@pytest.mark.parametrize(("name", "machine"), [("ahbm", "mine"), ("hbm3", "eight-with-hbm3")])
def test_the_example_in_the_comment_of_a_preset_is_a_machine(name: str, machine: str) -> None:
    comment = "\n".join(re.findall(r"^#     (.*)$", preset_text(name), re.MULTILINE))
    spec = parse_machine_text(comment[comment.index("extends:") :])
    assert spec.name == machine
    assert build_machine(spec).spec == spec
