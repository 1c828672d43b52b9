import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluation.interval import (
    mean_of,
    paired_difference,
    share_interval,
    student_quantile,
)

PRINTED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize(("degrees", "expected"), PRINTED.items())
def test_quantiles_are_those_of_printed_tables(degrees: int, expected: float) -> None:
    assert student_quantile(degrees) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("count", [3, 8, 40])
def test_an_interval_has_the_true_mean_in_it_19_times_of_20(count: int) -> None:
    rng = np.random.default_rng(count)
    found = [mean_of(rng.normal(7.0, 2.0, count).tolist()).interval for _ in range(2000)]
    share = np.mean([pair is not None and pair[0] <= 7.0 <= pair[1] for pair in found])
    assert share == pytest.approx(0.95, abs=0.02)


def test_one_sample_has_no_interval_and_says_nothing_about_zero() -> None:
    assert mean_of([3.0]).interval is None
    assert mean_of([3.0]).has_zero


def test_what_pairs_have_in_common_does_not_widen_their_difference() -> None:
    rng = np.random.default_rng(1)
    common = 100 * rng.normal(size=20)
    better, worse = common + 1 + 0.1 * rng.normal(size=20), common
    assert not paired_difference(better.tolist(), worse.tolist()).has_zero
    assert paired_difference(worse.tolist(), worse.tolist()).has_zero


@given(st.integers(1, 1000), st.data())
def test_the_interval_of_a_share_holds_it_and_stays_a_share(
    cases: int, data: st.DataObject
) -> None:
    hits = data.draw(st.integers(0, cases))
    low, high = share_interval(hits, cases)
    assert 0.0 <= low <= hits / cases + 1e-12
    assert hits / cases - 1e-12 <= high <= 1.0
    assert low < high
