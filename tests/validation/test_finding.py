"""Rules: what holds, what does not, and that no sample can buy a wide tolerance."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.validation.finding import (
    at_least,
    at_most,
    confident,
    confident_mean,
    exact,
    in_band,
    near_model,
    printed,
    ramp,
)

numbers = st.fractions(min_value=-1000, max_value=1000)
positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)


@given(expected=numbers, found=numbers)
def test_exact_holds_for_equal_numbers_only(expected: Fraction, found: Fraction) -> None:
    assert exact(expected, found, "ps").ok == (expected == found)
    assert exact(expected, expected, "ps").ok


@given(limit=numbers, found=numbers)
def test_a_bound_holds_on_its_side_and_tells_what_it_is_broken_by(
    limit: Fraction, found: Fraction
) -> None:
    upper, lower = at_most(limit, found, "x"), at_least(limit, found, "x")
    assert (upper.ok, lower.ok) == (found <= limit, found >= limit)
    assert upper.error + lower.error == abs(found - limit)


@given(expected=positive, share=st.fractions(min_value=-1, max_value=1))
def test_a_ramp_is_one_per_cent_wide_and_a_model_five(expected: Fraction, share: Fraction) -> None:
    found = expected * (1 + share)
    assert ramp(expected, found, "x").ok == (abs(share) <= Fraction(1, 100))
    assert near_model(expected, found, "x").ok == (abs(share) <= Fraction(5, 100))


@pytest.mark.parametrize(("found", "ok"), [("0.88", True), ("0.94", True), ("0.941", False)])
def test_the_ends_of_a_band_belong_to_it(found: str, ok: bool) -> None:
    assert in_band("0.88", "0.94", Fraction(found), "busy").ok is ok


@pytest.mark.parametrize(
    ("figure", "found", "ok"),
    [
        ("23.93", "23.9286", True),
        ("23.93", "23.935", True),
        ("23.93", "23.9351", False),
        ("64", "64.5", True),
        ("64", "64.6", False),
        ("12.60", "12.606", False),
    ],
)
def test_a_printed_figure_is_right_to_half_of_its_last_digit(
    figure: str, found: str, ok: bool
) -> None:
    assert printed(figure, Fraction(found), "x").ok is ok


@given(expected=st.floats(0.01, 100), standard_error=st.floats(0, 1000))
def test_a_mean_holds_within_four_errors_of_at_most_one_per_cent(
    expected: float, standard_error: float
) -> None:
    finding = confident(expected, expected, "x", standard_error=standard_error)
    assert finding.ok
    assert float(finding.tolerance) <= 0.04 * expected * 1.000001
    assert float(finding.tolerance) <= 4 * standard_error
    far = confident(expected, expected * 1.05, "x", standard_error=standard_error)
    assert not far.ok


def test_the_spread_of_independent_runs_gives_the_standard_error() -> None:
    finding = confident_mean(10.0, [9.9, 10.1, 10.0, 10.0], "x")
    assert float(finding.found) == pytest.approx(10.0)
    assert float(finding.tolerance) == pytest.approx(4 * 0.0816497 / 2, rel=1e-5)
