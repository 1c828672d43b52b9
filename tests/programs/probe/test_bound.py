"""Rows whose time is known on paper, and how near crowded ones come to their limits."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.probe.machines import small_machine
from tilewright.device.dma import Access
from tilewright.machine.build import Machine, build_machine
from tilewright.machine.parse import parse_machine
from tilewright.machine.route import Traffic, zero_load_ps
from tilewright.programs.probe.case import PROBE_CASES
from tilewright.programs.probe.run import run_probe
from tilewright.records import ProbeRow
from tilewright.units import num_flits

PACKET, MIB = 1024, 2**20
LONELY = (
    "host_write_near",
    "host_write_far",
    "host_read_near",
    "host_read_far",
    "pe_local",
    "pe_same_cube",
    "pe_next_cube",
    "pe_far_cube",
    "hot_1",
)


@cache
def machine_of(*overrides: str) -> Machine:
    return small_machine(*overrides)


@cache
def default_machine(*overrides: str) -> Machine:
    return build_machine(parse_machine("ahbm", overrides))


def row_of(machine: Machine, case: str, num_bytes: int) -> ProbeRow:
    (row,) = run_probe(machine, names=[case], sizes=[num_bytes]).cases
    return row


def way_ps(machine: Machine, case: str, num_bytes: int) -> int:
    """Out and back on an idle machine, without the memory."""
    (flow,) = PROBE_CASES[case].build(machine, num_bytes)
    source = "host"
    if flow.issuer is not None:
        source = f"sip0.cube{flow.issuer.cube}.pe{flow.issuer.pe}.dma"
    target = f"sip0.cube{flow.target.cube}.hbm_ctrl.pe{flow.target.pe}"
    ends = machine.node_id(source), machine.node_id(target)
    spread = flow.target.pe if flow.issuer is None else flow.issuer.pe
    out = machine.route(ends[0], ends[1], Traffic.REQUEST, spread)
    back = machine.route(ends[1], ends[0], Traffic.RESPONSE, spread)
    flits = num_flits(num_bytes, flit_bytes=machine.spec.flit_bytes)
    out_flits, back_flits = (flits, 1) if flow.access is Access.WRITE else (1, flits)
    size = machine.spec.flit_bytes
    there_ps = zero_load_ps(
        [machine.links[link] for link, _ in out], num_flits=out_flits, flit_bytes=size
    )
    return there_ps + zero_load_ps(
        [machine.links[link] for link, _ in back], num_flits=back_flits, flit_bytes=size
    )


def access_ps(machine: Machine, num_bytes: int, *, is_write: bool) -> tuple[int, int]:
    """A packet at closed banks, and what of it is the effect of bank groups.

    The busiest channel has ``min(num_bytes, 256)`` bytes. Its bursts take turns between two bank
    groups, and go in order. The second group opens RRD_S after the first, so the second burst
    waits for that where RRD_S is more than CCD_S; all others follow at CCD_S.
    """
    hbm = machine.spec.cube.hbm
    timing = hbm.timing
    bursts = -(-min(num_bytes, hbm.interleave_bytes) // hbm.burst_bytes)
    rcd = timing.rcd_write_clocks if is_write else timing.rcd_read_clocks
    latency = timing.cwl_clocks if is_write else timing.cl_clocks
    effect = max(0, timing.rrd_s_clocks - timing.ccd_s_clocks) if bursts > 1 else 0
    clocks = rcd + latency + (bursts - 1) * timing.ccd_s_clocks + timing.bl_clocks + effect
    return clocks * timing.clock_ps, effect * timing.clock_ps


@pytest.mark.parametrize("case", LONELY)
@given(num_bytes=st.integers(1, PACKET))
@settings(max_examples=12)
def test_one_packet_takes_its_way_and_one_access_to_the_picosecond(
    case: str, num_bytes: int
) -> None:
    machine = machine_of()
    is_write = "write" in case
    memory_ps, effect_ps = access_ps(machine, num_bytes, is_write=is_write)
    row = row_of(machine, case, num_bytes)
    assert row.latency_ps == way_ps(machine, case, num_bytes) + memory_ps
    assert row.bound_ps == row.latency_ps - effect_ps
    assert row.breakdown_ps.memory == memory_ps
    assert (row.breakdown_ps.queueing, row.breakdown_ps.refresh) == (0, 0)


def test_the_bank_groups_cost_one_packet_three_clocks() -> None:
    row = row_of(machine_of(), "pe_local", 256)
    assert (row.latency_ps, row.bound_ps) == (42_762, 41_262)


@pytest.mark.parametrize("case", LONELY)
def test_with_the_simple_memory_one_packet_is_exactly_its_bound(case: str) -> None:
    machine = machine_of("cube.hbm.model=simple")
    for num_bytes in (1, 64, 257, PACKET):
        row = row_of(machine, case, num_bytes)
        chunk_ps = -(-min(num_bytes, 256) * 1000 // 32)
        assert row.latency_ps == row.bound_ps
        assert row.latency_ps == way_ps(machine, case, num_bytes) + chunk_ps + 8_000


def test_a_stream_of_reads_takes_its_bound_and_the_start_of_the_memory() -> None:
    """All packets set out at once; the last data leave when the channels have moved all of it."""
    machine = machine_of("cube.hbm.refresh.kind=none")
    row = row_of(machine, "pe_local", MIB)
    assert row.bound_ps <= row.latency_ps <= row.bound_ps * 1.01


def test_eight_pes_fill_85_percent_of_the_four_connections_of_a_port() -> None:
    """Writes spread over 4 connections of 128 GB/s; 85 % leaves room for refresh of the target."""
    row = row_of(default_machine(), "east_port_8", MIB)
    assert 0.85 * 4 * 128 <= row.bandwidth_gbs <= 4 * 128
    assert row.bound_gbs <= 4 * 128


def test_one_controller_serves_issuers_one_after_the_other() -> None:
    """Each further issuer of 64 KiB costs the slice 64 KiB / 256 GB/s = 256 ns, within 5 %."""
    machine = default_machine("cube.hbm.refresh.kind=none")
    times = {n: row_of(machine, f"hot_{n}", 65536).latency_ps for n in (1, 2, 3, 8)}
    for few, many in ((1, 2), (2, 3), (3, 8)):
        each_ps = (times[many] - times[few]) / (many - few)
        assert each_ps == pytest.approx(256_000, rel=0.05)


def test_all_slices_together_reach_nine_tenths_of_what_refresh_leaves() -> None:
    """1 MiB of a slice takes 4.1 us without refresh and meets one refresh of 3.9 us: it can be
    faster than the long run, never faster than the nominal 16 x 256 GB/s. At this size the fixed
    way and the start of the memory cost less than 1 %, so 90 % is what must be reached.
    """
    row = row_of(machine_of(), "local_all", MIB)
    assert 0.9 * row.refresh_limited_gbs <= row.bandwidth_gbs <= 16 * 256
    assert row.refresh_limited_gbs == pytest.approx(16 * 256 * 0.85333, rel=1e-4)


def test_the_window_of_the_dma_bounds_a_far_read() -> None:
    """One packet under way: every packet costs a whole trip, and the bound says so."""
    machine = machine_of("pe.dma.in_flight_bytes=1 KiB", "cube.hbm.model=simple")
    row = row_of(machine, "pe_far_cube", 8 * PACKET)
    one = row_of(machine, "pe_far_cube", PACKET)
    assert row.latency_ps == 8 * one.latency_ps
    assert row.bound_ps > 0.9 * row.latency_ps


def test_a_second_channel_of_the_dma_doubles_what_is_under_way() -> None:
    """Two channels with one packet under way each: half as many trips, one after the other."""
    window = "pe.dma.in_flight_bytes=1 KiB"
    one = row_of(machine_of(window, "cube.hbm.model=simple"), "pe_far_cube", 8 * PACKET)
    machine = machine_of(window, "cube.hbm.model=simple", "pe.dma.read_channels=2")
    two = row_of(machine, "pe_far_cube", 8 * PACKET)
    assert 0.5 * one.latency_ps <= two.latency_ps < 0.55 * one.latency_ps
    assert two.bound_ps <= two.latency_ps
    assert two.bound_ps > 0.9 * two.latency_ps
