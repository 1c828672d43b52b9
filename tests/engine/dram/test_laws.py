"""What HBM can do on paper (HB1 to HB10), for HBM4 at 8 Gb/s and HBM3 at 6.4 Gb/s.

Latencies are exact. Rates hold within 1 % once warm-up and drain are left out.
"""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given

from tests.kinds import every_engine
from tests.oracles_hbm.burst_model import Outcome, Request
from tests.oracles_hbm.loads import (
    BAD_MAP,
    HBM3_CLOCKS,
    HBM4_CLOCKS,
    cases,
    drive,
    slice_spec,
    timing_of,
)
from tilewright.engine import EngineKind
from tilewright.engine.dram.memory import BankedMemory
from tilewright.engine.dram.spec import (
    BankedRefreshSpec,
    BankedSpec,
    BankedTimingSpec,
    RefreshScope,
)

BURST = 32
GROUP_STRIDE = 32  # the next bank group
COLUMN_STRIDE = 64  # the next column of a bank
BANK_STRIDE = 2 * 1024  # the next bank of a group
ROW_STRIDE = 32 * 1024  # the next row of a bank
REFI_PS = 3_900_000


class Hbm(NamedTuple):
    """A set of timings and what follows from it: latencies in ps, rates in bytes per us."""

    name: str
    timing: BankedTimingSpec
    hit_ps: int
    closed_ps: int
    conflict_ps: int
    peak: int
    one_group: int
    one_activate_each: Fraction
    one_bank: Fraction
    busy_ps: int  # RFC
    refresh_loss: Fraction


HBM4 = Hbm(
    "HBM4",
    timing_of(HBM4_CLOCKS, 500),
    hit_ps=11_000,
    closed_ps=30_500,
    conflict_ps=47_000,
    peak=32_000,
    one_group=16_000,
    one_activate_each=Fraction(4 * BURST * 10**6, 15_000),
    one_bank=Fraction(BURST * 10**6, 45_000),
    busy_ps=530_000,
    refresh_loss=Fraction(572_000, REFI_PS),
)
HBM3 = Hbm(
    "HBM3",
    timing_of(HBM3_CLOCKS, 625),
    hit_ps=13_750,
    closed_ps=33_125,
    conflict_ps=49_375,
    peak=25_600,
    one_group=12_800,
    one_activate_each=Fraction(4 * BURST * 10**6, 15_000),
    one_bank=Fraction(BURST * 10**6, 45_000),
    busy_ps=350_000,
    refresh_loss=Fraction(391_250, REFI_PS),
)

every_hbm = pytest.mark.parametrize("hbm", [pytest.param(hbm, id=hbm.name) for hbm in (HBM4, HBM3)])


def reads(addresses: list[int], *, num_bytes: int = BURST, pause_ps: int = 0) -> list[Request]:
    return [
        Request(pause_ps * place, place, False, address, num_bytes)
        for place, address in enumerate(addresses)
    ]


def last_latency_ps(hbm: Hbm, kind: EngineKind, addresses: list[int]) -> int:
    """Of the last of some reads that do not meet."""
    pause_ps = 10**6
    memory = BankedMemory(slice_spec(hbm.timing, pseudo_channels=1), kind)
    found = drive(memory, reads(addresses, pause_ps=pause_ps))
    last = len(addresses) - 1
    return found.served[last].done_ps - last * pause_ps


def rate(found: Outcome, num_bytes: int) -> Fraction:
    """Bytes per us between the first and the third quarter of what was done, by time."""
    done = sorted(served.done_ps for served in found.served.values())
    low, high = len(done) // 4, 3 * len(done) // 4
    return Fraction((high - low) * num_bytes * 10**6, done[high] - done[low])


def close_to(expected: Fraction | int) -> object:
    return pytest.approx(float(expected), rel=0.01)


@every_engine
@every_hbm
def test_hb1_a_row_hit_takes_cl_and_the_burst(hbm: Hbm, kind: EngineKind) -> None:
    assert last_latency_ps(hbm, kind, [0, COLUMN_STRIDE]) == hbm.hit_ps


@every_engine
@every_hbm
def test_hb2_a_closed_bank_adds_rcd(hbm: Hbm, kind: EngineKind) -> None:
    assert last_latency_ps(hbm, kind, [0, BANK_STRIDE]) == hbm.closed_ps


@every_engine
@every_hbm
def test_hb3_another_row_adds_rp(hbm: Hbm, kind: EngineKind) -> None:
    assert last_latency_ps(hbm, kind, [0, ROW_STRIDE]) == hbm.conflict_ps


@every_engine
@every_hbm
def test_hb4_bank_groups_in_turn_give_the_peak(hbm: Hbm, kind: EngineKind) -> None:
    spec = slice_spec(hbm.timing, pseudo_channels=1)
    found = drive(BankedMemory(spec, kind), reads([GROUP_STRIDE * n for n in range(1000)]))
    assert float(rate(found, BURST)) == close_to(hbm.peak)


@every_engine
@every_hbm
def test_hb5_one_bank_group_gives_half_of_it(hbm: Hbm, kind: EngineKind) -> None:
    spec = slice_spec(hbm.timing, pseudo_channels=1)
    # column by column, bank by bank of the first stack id
    addresses = [
        n % 32 * COLUMN_STRIDE + n // 32 % 8 * BANK_STRIDE + n // 256 * ROW_STRIDE
        for n in range(1000)
    ]
    found = drive(BankedMemory(spec, kind), reads(addresses))
    assert float(rate(found, BURST)) == close_to(hbm.one_group)


@every_engine
@every_hbm
def test_hb6_one_access_per_activate_is_bound_by_the_activate_window(
    hbm: Hbm, kind: EngineKind
) -> None:
    spec = slice_spec(hbm.timing, pseudo_channels=1)
    # group by group, bank by bank, always a new row: 32 banks before one comes again
    addresses = [
        n % 2 * GROUP_STRIDE + n // 2 % 16 * BANK_STRIDE + n // 32 * ROW_STRIDE for n in range(1000)
    ]
    found = drive(BankedMemory(spec, kind), reads(addresses))
    assert float(rate(found, BURST)) == close_to(hbm.one_activate_each)


@every_engine
@every_hbm
def test_hb7_a_new_row_of_one_bank_every_time_is_bound_by_rc(hbm: Hbm, kind: EngineKind) -> None:
    spec = slice_spec(hbm.timing, pseudo_channels=1)
    found = drive(BankedMemory(spec, kind), reads([ROW_STRIDE * n for n in range(400)]))
    assert float(rate(found, BURST)) == close_to(hbm.one_bank)


def with_refresh(hbm: Hbm, pseudo_channels: int = 1) -> BankedSpec:
    refresh = BankedRefreshSpec(RefreshScope.ALL_BANKS, REFI_PS, REFI_PS // 8, hbm.busy_ps)
    return slice_spec(hbm.timing, refresh, pseudo_channels=pseudo_channels)


@every_engine
@every_hbm
def test_hb8_hb9_refresh_costs_streams_its_time_and_that_of_closing_and_opening(
    hbm: Hbm, kind: EngineKind
) -> None:
    num_intervals = 100 if kind is EngineKind.NATIVE else 5
    size = 1024
    share = 1 - hbm.refresh_loss
    count = int(num_intervals * REFI_PS * share * hbm.peak / 10**6) // size
    memory = BankedMemory(with_refresh(hbm), kind)
    found = drive(memory, reads([size * n for n in range(count)], num_bytes=size))
    (counters,) = found.counters
    # what is left of the loss: the fill before the first data, CCD_R between stack ids
    lost = Fraction(counters.refresh_ps + counters.row_ps, counters.window_ps)
    assert float(lost) == close_to(hbm.refresh_loss)
    assert float(Fraction(counters.busy_ps, counters.window_ps)) == close_to(share)


@every_hbm
def test_the_losses_on_paper_are_those_of_the_timings(hbm: Hbm) -> None:
    timing = hbm.timing
    lost_ps = timing.rtp_ps + timing.rp_ps + hbm.busy_ps + timing.rcd_read_ps
    assert Fraction(lost_ps, REFI_PS) == hbm.refresh_loss


@every_engine
@every_hbm
def test_a_stream_through_the_address_map_reaches_the_peak_of_a_slice(
    hbm: Hbm, kind: EngineKind
) -> None:
    load = reads([1024 * n for n in range(600)], num_bytes=1024)
    found = drive(BankedMemory(slice_spec(hbm.timing), kind), load)
    assert float(rate(found, 1024)) == close_to(8 * hbm.peak)


@every_engine
@every_hbm
def test_a_map_with_bank_groups_above_the_columns_gives_half_of_it_inside_a_row(
    hbm: Hbm, kind: EngineKind
) -> None:
    spec = slice_spec(hbm.timing)
    load = reads([1024 * (n % 8) for n in range(400)], num_bytes=1024)
    good = drive(BankedMemory(spec, kind), load)
    assert float(rate(good, 1024)) == close_to(8 * hbm.peak)
    bad = drive(BankedMemory(replace(spec, address_map=BAD_MAP), kind), load)
    assert float(rate(bad, 1024)) == close_to(8 * hbm.one_group)
    for row in bad.counters:
        assert float(row.bank_group_ps) == close_to(row.busy_ps)


@every_engine
@every_hbm
def test_a_deep_queue_finds_the_other_bank_group_behind_a_bad_map(
    hbm: Hbm, kind: EngineKind
) -> None:
    spec = slice_spec(hbm.timing, address_map=BAD_MAP)
    load = reads([1024 * n for n in range(600)], num_bytes=1024)
    deep = rate(drive(BankedMemory(spec, kind), load), 1024)
    shallow = rate(drive(BankedMemory(replace(spec, read_queue_bursts=8), kind), load), 1024)
    assert deep > 8 * hbm.peak * Fraction(9, 10)
    assert shallow < 8 * hbm.one_group


@every_engine
@every_hbm
def test_hb10_a_mixed_load_stays_below_the_limit_and_says_why(hbm: Hbm, kind: EngineKind) -> None:
    spec = with_refresh(hbm, pseudo_channels=8)
    load = [
        Request(0, n, n % 32 >= 24, (n * 7919 % 4096) * 1024 if n % 3 else n * 1024, 1024)
        for n in range(3000 if kind is EngineKind.NATIVE else 800)
    ]
    found = drive(BankedMemory(spec, kind), load)
    for row in found.counters:
        assert row.busy_ps <= row.window_ps * (1 - hbm.refresh_loss) * Fraction(101, 100)
        causes = (row.refresh_ps, row.turnaround_ps, row.row_ps, row.bank_group_ps, row.idle_ps)
        assert row.busy_ps + sum(causes) == row.window_ps
        assert min(row.refresh_ps, row.turnaround_ps, row.row_ps) > 0
        hits = row.row_hits + row.row_closed + row.row_conflicts
        assert hits == row.read_bursts + row.write_bursts


@given(cases())
def test_hb10_every_ps_of_every_load_is_explained(case: tuple[BankedSpec, list[Request]]) -> None:
    spec, load = case
    found = drive(BankedMemory(spec), load)
    for row in found.counters:
        causes = (row.refresh_ps, row.turnaround_ps, row.row_ps, row.bank_group_ps, row.idle_ps)
        assert min(causes) >= 0
        assert row.busy_ps + sum(causes) == row.window_ps
        bursts = row.read_bursts + row.write_bursts
        assert row.busy_ps == bursts * spec.timing.bl_ps
        assert row.row_hits + row.row_closed + row.row_conflicts == bursts
    assert [sum(banks) for banks in found.openings] == [
        row.row_closed + row.row_conflicts for row in found.counters
    ]
    assert all(
        served.accepted_ps + served.refresh_ps < served.done_ps for served in found.served.values()
    )
