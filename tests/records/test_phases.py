"""The spread of a latency in a record holds together or is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from tilewright.records.phases import PhaseSpread

FIELDS: dict[str, Any] = {
    "count": 2, "reason": "asked", "interval_ps": 10, "mean_ps": 3.0, "half_width_ps": 1.0,
    "min_ps": 2, "max_ps": 4, "latencies_ps": (2, 4),
}  # fmt: skip


def test_a_spread_knows_its_relative_half_width() -> None:
    assert PhaseSpread(**FIELDS).relative_half_width == pytest.approx(1 / 3)
    alone = {"count": 1, "mean_ps": 2.0, "max_ps": 2, "latencies_ps": (2,), "half_width_ps": None}
    assert PhaseSpread(**FIELDS | alone).relative_half_width is None


def test_an_older_spread_that_does_not_know_the_refresh_says_nothing_of_what_was_missed() -> None:
    spread = PhaseSpread(**FIELDS)
    assert (spread.refresh_ps, spread.slices) == (None, None)
    assert (spread.unseen_ps, spread.may_miss_refresh) == (0.0, False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"count": 3}, "2 latencies_ps of 3 phases"),
        ({"min_ps": 1}, "min_ps and max_ps"),
        ({"max_ps": 5}, "min_ps and max_ps"),
        ({"mean_ps": 3.5}, "mean_ps"),
        ({"half_width_ps": None}, "half_width_ps"),
    ],
)
def test_a_spread_that_does_not_hold_together_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        PhaseSpread(**FIELDS | changed)
