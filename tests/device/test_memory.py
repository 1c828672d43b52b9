"""What the engine is told of a slice, and what a first access costs."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import every_engine
from tilewright.device.memory import first_access_ps, slice_spec
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import BankedMemory, SimpleMemory
from tilewright.engine.dram.spec import BankedSpec, RefreshScope, SimpleSpec
from tilewright.machine.build import Machine, build_machine, machine_hash, refresh_of, shift_refresh
from tilewright.machine.parse import parse_machine

# JEDEC's distances of HBM4 at 8 Gb/s and of HBM3 at 6.4 Gb/s, in ps
HBM4_PS = {
    "bl_ps": 1_000,
    "cl_ps": 10_000,
    "cwl_ps": 5_000,
    "rcd_read_ps": 19_500,
    "rcd_write_ps": 9_500,
    "rp_ps": 16_500,
    "ras_ps": 28_500,
    "rc_ps": 45_000,
    "ccd_s_ps": 1_000,
    "ccd_l_ps": 2_000,
    "ccd_r_ps": 1_000,
    "rrd_s_ps": 2_500,
    "rrd_l_ps": 3_500,
    "faw_ps": 15_000,
    "wtr_s_ps": 4_500,
    "wtr_l_ps": 6_500,
    "rtw_ps": 12_500,
    "wr_ps": 21_000,
    "rtp_ps": 6_000,
}
HBM3_PS = {
    "bl_ps": 1_250,
    "cl_ps": 12_500,
    "cwl_ps": 6_250,
    "rcd_read_ps": 19_375,
    "rcd_write_ps": 9_375,
    "rp_ps": 16_250,
    "ras_ps": 28_125,
    "rc_ps": 45_000,
    "ccd_s_ps": 1_250,
    "ccd_l_ps": 2_500,
    "ccd_r_ps": 1_875,
    "rrd_s_ps": 2_500,
    "rrd_l_ps": 3_125,
    "faw_ps": 15_000,
    "wtr_s_ps": 4_375,
    "wtr_l_ps": 6_250,
    "rtw_ps": 12_500,
    "wr_ps": 20_625,
    "rtp_ps": 5_625,
}


@cache
def machine_of(preset: str, *overrides: str) -> Machine:
    return build_machine(parse_machine(preset, overrides))


def banked_of(machine: Machine, slice_index: int = 0) -> BankedSpec:
    spec = machine.spec
    found = slice_spec(spec.cube.hbm, slice_index, spec.cube.pes)
    assert isinstance(found, BankedSpec)
    return found


@pytest.mark.parametrize(("preset", "distances"), [("ahbm", HBM4_PS), ("hbm3", HBM3_PS)])
def test_clocks_become_picoseconds(preset: str, distances: dict[str, int]) -> None:
    timing = banked_of(machine_of(preset)).timing
    assert {name: getattr(timing, name) for name in distances} == distances


@pytest.mark.parametrize("preset", ["ahbm", "hbm3", "ahbm-small"])
def test_a_slice_has_its_share_of_the_stack(preset: str) -> None:
    machine = machine_of(preset)
    hbm, pes = machine.spec.cube.hbm, machine.spec.cube.pes
    found = banked_of(machine)
    assert found.pseudo_channels == hbm.pseudo_channels // pes
    assert found.capacity_bytes == hbm.capacity_bytes // pes == machine.addresses.slice_bytes
    assert (found.bank_groups, found.banks, found.stack_ids) == (
        hbm.bank_groups,
        hbm.banks,
        hbm.stack_ids,
    )
    assert (found.row_bytes, found.address_map) == (hbm.row_bytes, hbm.address_map)


def test_the_slices_of_a_cube_refresh_one_after_the_other() -> None:
    machine = machine_of("ahbm")
    firsts = []
    for index in range(8):
        refresh = banked_of(machine, index).refresh
        assert refresh is not None
        assert (refresh.scope, refresh.interval_ps) == (RefreshScope.ALL_BANKS, 3_900_000)
        assert refresh.busy_ps == 530_000
        firsts.append(refresh.first_ps)
    assert firsts == [(index + 1) * 3_900_000 // 8 for index in range(8)]


def test_a_refresh_of_one_bank_has_its_own_time_and_none_is_none() -> None:
    per_bank = banked_of(machine_of("ahbm", "cube.hbm.refresh.kind=per_bank")).refresh
    assert per_bank is not None
    assert (per_bank.scope, per_bank.busy_ps) == (RefreshScope.ONE_BANK, 280_000)
    assert banked_of(machine_of("ahbm", "cube.hbm.refresh.kind=none")).refresh is None


@pytest.mark.parametrize(("percent", "rate"), [(100, 32_000), (50, 16_000), (93, 29_760)])
def test_the_simple_memory_has_a_rate_and_a_latency(percent: int, rate: int) -> None:
    values = ("cube.hbm.model=simple", f"cube.hbm.simple_efficiency_percent={percent}")
    machine = machine_of("ahbm", *values)
    found = slice_spec(machine.spec.cube.hbm, 0, 8)
    expected = SimpleSpec(
        pseudo_channels=8, interleave_bytes=256, bytes_per_us=rate, latency_ps=8_000
    )
    assert found == expected


def done_ps(memory: BankedMemory | SimpleMemory, num_bytes: int, *, is_write: bool) -> int:
    memory.accept(0, access_id=0, is_write=is_write, address=0, num_bytes=num_bytes)
    completions = memory.advance(0)
    while not completions:
        next_ps = memory.next_ps()
        assert next_ps is not None
        completions = memory.advance(next_ps)
    return completions[0][1]


@every_engine
@pytest.mark.parametrize("is_write", [False, True])
@pytest.mark.parametrize("preset", ["ahbm", "hbm3"])
def test_a_first_burst_costs_its_opening_its_latency_and_its_data(
    kind: EngineKind, preset: str, is_write: bool
) -> None:
    machine = machine_of(preset)
    memory = BankedMemory(banked_of(machine), kind)
    hbm = machine.spec.cube.hbm
    assert done_ps(memory, 32, is_write=is_write) == first_access_ps(hbm, 32, is_write=is_write)


@given(st.integers(1, 1024), st.booleans(), st.integers(0, 20))
@settings(max_examples=30)
def test_a_first_access_takes_its_least_time_and_the_wait_for_the_second_bank_group(
    num_bytes: int, is_write: bool, rrd_s: int
) -> None:
    machine = machine_of("ahbm", f"cube.hbm.timing.rrd_s_clocks={rrd_s}")
    hbm = machine.spec.cube.hbm
    memory = BankedMemory(banked_of(machine), EngineKind.REFERENCE)
    found_ps = done_ps(memory, num_bytes, is_write=is_write)
    least_ps = first_access_ps(hbm, num_bytes, is_write=is_write)
    bursts = -(-min(num_bytes, 256) // 32)
    late_ps = max(0, rrd_s - 2) * 500 if bursts > 1 else 0  # the second bank group opens later
    assert found_ps == least_ps + late_ps


@every_engine
def test_a_first_access_of_the_simple_memory_is_exactly_its_least_time(kind: EngineKind) -> None:
    machine = machine_of("ahbm", "cube.hbm.model=simple")
    hbm = machine.spec.cube.hbm
    found = slice_spec(hbm, 0, 8)
    assert isinstance(found, SimpleSpec)
    for num_bytes in (1, 100, 256, 1024):
        least_ps = first_access_ps(hbm, num_bytes, is_write=False)
        assert done_ps(SimpleMemory(found, kind), num_bytes, is_write=False) == least_ps


@given(st.integers(0, 10_000_000), st.integers(0, 7))
def test_a_phase_moves_the_first_refresh_of_a_slice_inside_one_interval(
    phase_ps: int, index: int
) -> None:
    machine = shift_refresh(machine_of("ahbm"), phase_ps)
    refresh, base = banked_of(machine, index).refresh, banked_of(machine_of("ahbm"), index).refresh
    assert refresh is not None
    assert base is not None
    assert 0 < refresh.first_ps <= refresh.interval_ps
    assert (refresh.first_ps - base.first_ps - phase_ps) % refresh.interval_ps == 0
    again = shift_refresh(machine, refresh.interval_ps)
    assert again.spec == machine.spec


def test_phases_one_interval_apart_make_one_slice_but_two_machines() -> None:
    near = machine_of("ahbm", "cube.hbm.refresh.phase_ps=7 ns")
    far = machine_of("ahbm", "cube.hbm.refresh.phase_ps=3907 ns")
    assert [banked_of(near, slice_) for slice_ in range(8)] == [
        banked_of(far, slice_) for slice_ in range(8)
    ]
    assert (
        machine_hash(near.spec) != machine_hash(far.spec) != machine_hash(machine_of("ahbm").spec)
    )


@pytest.mark.parametrize("value", ["cube.hbm.refresh.kind=none", "cube.hbm.model=simple"])
def test_a_machine_without_refresh_has_nothing_to_shift(value: str) -> None:
    machine = machine_of("ahbm", value)
    assert refresh_of(machine.spec) is None
    assert shift_refresh(machine, 5) is machine
