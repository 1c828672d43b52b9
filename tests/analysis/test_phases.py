"""Sampling of refresh phases: how many, when to stop, and what is known then."""

from math import gcd
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.analysis.phases import (
    MAX_PHASES,
    T_975,
    auto_counts,
    half_width_ps,
    sample_phases,
    spread_of,
)
from tilewright.errors import UsageError
from tilewright.machine.parse import parse_machine
from tilewright.machine.spec import MachineSpec

AHBM = parse_machine("ahbm")
INTERVAL_PS = 3_900_000
latencies = st.integers(1, 10**9)


class Runs:
    """Latencies by shift, and which of them were asked for."""

    def __init__(self, latency_ps: dict[int, int] | int) -> None:
        self.latency_ps = latency_ps
        self.asked: list[int] = []

    def __call__(self, shift_ps: int) -> int:
        self.asked.append(shift_ps)
        if isinstance(self.latency_ps, int):
            return self.latency_ps
        return self.latency_ps.get(shift_ps, min(self.latency_ps.values()))


@given(st.lists(latencies, min_size=2, max_size=MAX_PHASES))
def test_the_half_width_is_that_of_the_textbook(sample: list[int]) -> None:
    expected = T_975[len(sample) - 2] * stdev(sample) / len(sample) ** 0.5
    assert half_width_ps(sample) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_one_phase_has_no_half_width() -> None:
    assert half_width_ps([5]) is None


@given(st.integers(1, MAX_PHASES), st.data())
def test_phases_that_are_asked_for_are_even_and_each_runs_once(
    count: int, data: st.DataObject
) -> None:
    shifts = [index * INTERVAL_PS // count for index in range(count)]
    found = {shift: data.draw(latencies) for shift in shifts}
    runs = Runs(found)
    spread = sample_phases(AHBM, count, found[0], runs)
    assert spread is not None
    assert runs.asked == shifts[1:]
    assert spread.latencies_ps == tuple(found[shift] for shift in shifts)
    assert spread.mean_ps == pytest.approx(mean(found.values()))
    assert (spread.min_ps, spread.max_ps) == (min(found.values()), max(found.values()))
    assert (spread.count, spread.reason) == (count, "asked")


@pytest.mark.parametrize("count", [0, -1, MAX_PHASES + 1])
def test_a_number_of_phases_that_nobody_can_have_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"phases: found {count}, expected 1 to {MAX_PHASES}"):
        sample_phases(AHBM, count, 1, Runs(1))


def test_a_run_longer_than_twenty_intervals_is_not_repeated() -> None:
    runs = Runs(1)
    spread = sample_phases(AHBM, None, 20 * INTERVAL_PS + 1, runs)
    assert spread is not None
    assert (spread.count, spread.reason, runs.asked) == (1, "long", [])
    sample_phases(AHBM, None, 20 * INTERVAL_PS, runs)
    assert runs.asked


def test_a_short_run_that_always_agrees_has_phases_no_further_apart_than_a_refresh() -> None:
    runs = Runs(1000)
    spread = sample_phases(AHBM, None, 1000, runs)
    assert spread is not None
    assert (spread.count, spread.half_width_ps, spread.reason) == (9, 0.0, "narrow")
    per_bank = parse_machine("ahbm", ["cube.hbm.refresh.kind=per_bank"])
    spread = sample_phases(per_bank, None, 1000, Runs(1000))
    assert spread is not None
    assert spread.count == 16  # a bank's refresh is shorter


@pytest.mark.parametrize(
    ("latency_ps", "count"),
    # a refresh that three phases miss takes 530 ns at a third of all phases: 2 % of 8.8 us
    [(INTERVAL_PS + 100, 9), (8_800_000, 9), (8_900_000, 3), (20 * INTERVAL_PS, 3)],
)
def test_a_run_stops_as_soon_as_no_refresh_that_was_missed_could_change_its_mean(
    latency_ps: int, count: int
) -> None:
    spread = sample_phases(AHBM, None, latency_ps, Runs(latency_ps))
    assert spread is not None
    assert (spread.count, spread.reason) == (count, "narrow")


@given(st.integers(1, 64))
def test_phases_are_never_in_step_with_the_refreshes_of_slices_until_the_last_number(
    slices: int,
) -> None:
    *tried, last = auto_counts(slices)
    assert last == 16
    assert [gcd(count, slices) for count in tried] == [1] * len(tried)


def test_a_run_on_all_slices_that_is_alike_at_phases_in_step_with_them_is_not_taken_for_known() -> (
    None
):
    step_ps = INTERVAL_PS // AHBM.cube.pes  # after which refreshes look alike for all slices

    def latency_of(shift_ps: int) -> int:
        return 1_600_000 if shift_ps % step_ps < step_ps // 4 else 1_400_000

    asked = sample_phases(AHBM, 8, latency_of(0), latency_of)
    assert asked is not None
    assert (asked.half_width_ps, asked.may_miss_refresh) == (0.0, True)
    spread = sample_phases(AHBM, None, latency_of(0), latency_of)
    assert spread is not None
    assert spread.count > 8
    assert not spread.may_miss_refresh
    many = [latency_of(index * INTERVAL_PS // 10_000) for index in range(10_000)]
    assert abs(spread.mean_ps - mean(many)) < (spread.half_width_ps or 0)


@pytest.mark.parametrize(
    ("count", "latency_ps", "unseen_ps"),
    [
        (3, 600_000, 530_000 / 3),
        (7, 600_000, 530_000 / 7),
        (9, 600_000, 0),  # 433 ns apart
        (8, 600_000, 487_500),  # in step with 8 slices
        (16, 600_000, 0),
        (3, 60_000_000, 530_000 / 3),
    ],
)
def test_phases_that_are_too_few_to_be_sure_say_by_how_much(
    count: int, latency_ps: int, unseen_ps: float
) -> None:
    spread = spread_of(
        [latency_ps] * count, interval_ps=INTERVAL_PS, refresh_ps=530_000, slices=8, reason="asked"
    )
    assert spread.unseen_ps == pytest.approx(unseen_ps)
    assert spread.may_miss_refresh == (unseen_ps >= 0.02 * latency_ps)
    wide = spread_of(
        [latency_ps, 4 * latency_ps] + [latency_ps] * (count - 2),
        interval_ps=INTERVAL_PS, refresh_ps=530_000, slices=8, reason="asked",
    )  # fmt: skip
    assert not wide.may_miss_refresh  # its half-width says more already


def test_a_noisy_run_ends_at_the_limit_and_says_so() -> None:
    def latency_of(shift_ps: int) -> int:
        return 1_000_000 if 300_000 <= shift_ps < 830_000 else 500_000  # a refresh of 530 ns

    spread = sample_phases(AHBM, None, 500_000, latency_of)
    assert spread is not None
    assert (spread.count, spread.reason) == (16, "limit")
    assert sorted(spread.latencies_ps) == [500_000] * 14 + [1_000_000] * 2
    assert spread.relative_half_width == pytest.approx(2.1314 * 170_783 / 4 / 562_500, abs=1e-4)


@given(st.dictionaries(st.integers(0, 15), latencies, min_size=16, max_size=16))
def test_the_rule_repeats_no_phase_and_stops_only_when_it_may(found: dict[int, int]) -> None:
    shifts = {index * INTERVAL_PS // count for count in (3, 9, 16) for index in range(count)}
    by_shift = {shift: found[16 * shift // INTERVAL_PS] for shift in shifts}
    runs = Runs(by_shift)
    spread = sample_phases(AHBM, None, by_shift[0], runs)
    assert spread is not None
    assert len(set(runs.asked)) == len(runs.asked)
    assert spread.latencies_ps == tuple(
        by_shift[index * INTERVAL_PS // spread.count] for index in range(spread.count)
    )
    if spread.reason == "narrow":
        assert spread.half_width_ps is not None
        assert spread.half_width_ps < 0.02 * spread.mean_ps
        assert spread.count in auto_counts(8)
        assert not spread.may_miss_refresh
    else:
        assert (spread.reason, spread.count) in {("limit", 16), ("long", 1)}


@pytest.mark.parametrize("value", ["cube.hbm.refresh.kind=none", "cube.hbm.model=simple"])
def test_without_refresh_there_is_one_run_and_no_spread(value: str) -> None:
    runs, spec = Runs(1), parse_machine("ahbm", [value])
    assert isinstance(spec, MachineSpec)
    assert sample_phases(spec, None, 1, runs) is None
    assert not runs.asked
