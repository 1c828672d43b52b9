"""Rows of a comparison, joined from trials."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import RecordError
from tilewright.evaluation import join_trials
from tilewright.evaluation.quality import pareto_front
from tilewright.records.attention.compare import QualityRow, TrialRecord


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
