from collections import Counter
from dataclasses import FrozenInstanceError

import pytest

from tilewright.errors import SpecError
from tilewright.machine import parse_machine
from tilewright.machine.build import Machine, build_machine, machine_hash, phase_shift_ps
from tilewright.machine.check import warnings_of
from tilewright.machine.presets import list_presets
from tilewright.machine.spec import CubeSpec, HbmSpec, MachineSpec, SipSpec


@pytest.fixture(scope="module")
def ahbm() -> Machine:
    return build_machine(MachineSpec())


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_builds_without_deadlock_and_without_warning(name: str) -> None:
    machine = build_machine(parse_machine(name))
    assert machine.grid.num_pes >= 1
    assert warnings_of(machine) == ()


def test_nodes_are_found_by_name_and_every_number_has_one(ahbm: Machine) -> None:
    assert [ahbm.node_id(node.name) for node in ahbm.nodes] == list(range(len(ahbm.nodes)))


def test_a_name_of_another_machine_is_refused(ahbm: Machine) -> None:
    with pytest.raises(SpecError, match=r"no node 'sip2\.cube0\.sram' in machine 'ahbm'"):
        ahbm.node_id("sip2.cube0.sram")
    with pytest.raises(SpecError, match="correct the path"):
        ahbm.node_id("sip2/cube0")


def test_the_attachment_table_lists_everything_that_sits_on_a_router(ahbm: Machine) -> None:
    routers = ahbm.attachments()
    assert len(routers) == 32 * (16 + 3 * 8 + 2)
    assert routers["sip1.cube15.pe7.dma"] == "sip1.cube15.r5c4"
    assert routers["sip1.cube15.hbm_ctrl.pe7"] == "sip1.cube15.r5c4"
    assert routers["sip0.cube0.m_cpu"] == "sip0.cube0.r0c2"
    assert routers["sip0.cube0.sram"] == "sip0.cube0.r3c0"
    pes = Counter(router for node, router in routers.items() if node.endswith(".dma"))
    assert set(pes.values()) == {1}


def test_a_machine_cannot_be_changed(ahbm: Machine) -> None:
    with pytest.raises(FrozenInstanceError):
        ahbm.nodes = ()  # type: ignore[misc]


def test_a_link_has_a_name_and_nine_channels(ahbm: Machine) -> None:
    assert ahbm.link_name(0) == "sip0.io0.pcie_ep -> sip0.io0.io_noc"
    assert ahbm.num_virtual_channels == 9


def test_the_hash_follows_the_content_of_the_spec_alone() -> None:
    spec = MachineSpec()
    assert machine_hash(spec) == machine_hash(MachineSpec(sip=SipSpec(count=2)))
    assert machine_hash(spec) != machine_hash(MachineSpec(sip=SipSpec(count=3)))
    slower = CubeSpec(hbm=HbmSpec(read_queue_bursts=64))
    assert machine_hash(spec) != machine_hash(MachineSpec(cube=slower))
    assert len(machine_hash(spec)) == 64


def test_building_twice_gives_the_same_machine(ahbm: Machine) -> None:
    again = build_machine(MachineSpec())
    assert (again.nodes, again.links) == (ahbm.nodes, ahbm.links)


@pytest.mark.parametrize("preset", ["ahbm", "ahbm-small", "crossbar-chip"])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_phases_are_even_over_the_interval_and_over_the_distance_of_slices(
    preset: str, count: int
) -> None:
    spec = parse_machine(preset)
    interval_ps = spec.cube.hbm.refresh.interval_ps
    shifts = [phase_shift_ps(spec, index, count) for index in range(count)]
    for period_ps in (interval_ps, interval_ps / spec.cube.pes):
        phases = sorted(shift % period_ps / period_ps for shift in shifts)
        gaps = [after - before for before, after in zip(phases, [*phases[1:], 1], strict=True)]
        assert phases[0] == pytest.approx(0, abs=1e-4)
        assert max(gaps) < 1.6 / count


def test_twice_as_many_phases_contain_those_before() -> None:
    spec = parse_machine("ahbm")
    few, many = ({phase_shift_ps(spec, index, n) for index in range(n)} for n in (4, 8))
    assert few < many


def test_a_machine_without_refresh_has_one_phase() -> None:
    spec = parse_machine("ahbm", ("cube.hbm.refresh.kind=none",))
    assert phase_shift_ps(spec, 3, 4) == 0
