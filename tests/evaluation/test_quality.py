import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.evaluation import join_trials
from tilewright.evaluation.quality import (
    mean_of,
    paired_difference,
    pareto_front,
    share_interval,
    student_quantile,
)
from tilewright.records.attention.compare import QualityRow, TrialRecord

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


def trial(**changes: object) -> TrialRecord:
    values: dict[str, object] = {
        "key": "0" * 64,
        "flow": "quest",
        "budget": 4,
        "case": 0,
        "graph_hash": "0" * 64,
        "mass": (0.5, 0.7),
        "head_mass": (0.6, 0.4),
        "output_error": (0.1, 0.1),
        "oracle_ratio": (1.0, 1.0),
        "stability": (0.5,),
        "num_bytes": 10,
        "dense_bytes": 20,
        "kl": None,
        "nll": None,
        "dense_nll": None,
        "needle_hits": None,
        "dense_needle_hits": None,
        "needle_cases": None,
        "first_pages": (),
    }
    return TrialRecord.model_validate(values | changes)


def joined(*trials: TrialRecord) -> QualityRow:
    return join_trials(trials, source="synthetic", context=64, pages=4)


def test_perplexity_is_that_of_mean_losses() -> None:
    row = joined(trial(nll=(2.0, 4.0), dense_nll=(1.0, 3.0)))
    expected = math.exp(3.0) - math.exp(2.0)
    assert row.perplexity_difference == pytest.approx(expected, rel=1e-12)


def test_losses_beyond_all_numbers_leave_figures_that_are_finite() -> None:
    row = joined(trial(nll=(1e6, 0.0), dense_nll=(0.0, 1e6)), trial(nll=(1e6,), dense_nll=(9.0,)))
    assert row.perplexity_difference is not None
    assert math.isfinite(row.perplexity_difference)


def test_trials_of_models_with_different_heads_are_not_joined() -> None:
    with pytest.raises(RecordError, match="trials of different numbers of heads"):
        joined(trial(), trial(head_mass=(0.5,)))


POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(POINTS)
def test_a_point_off_the_front_is_beaten_by_one_on_it(points: list[tuple[int, int]]) -> None:
    front = pareto_front(points)
    on_it = [point for point, kept in zip(points, front, strict=True) if kept]
    for point, kept in zip(points, front, strict=True):
        beaten = any(o[0] <= point[0] and o[1] >= point[1] and o != point for o in on_it)
        assert kept is not beaten
