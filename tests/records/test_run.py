import pytest
from pydantic import ValidationError

from tilewright.records import RunRecord, Totals, Versions, WhatRan

VERSIONS = Versions(tilewright="0.1", python="3.11", numpy="2.0", greenlet="3.1", engine="native")


def record_of(time_ps: int, breakdown_ps: dict[str, int], **fields: object) -> RunRecord:
    totals = Totals(time_ps=time_ps, num_bytes=0, num_events=0)
    document = {"what": WhatRan(command="probe"), "versions": VERSIONS, "totals": totals} | fields
    return RunRecord.model_validate(document | {"breakdown_ps": breakdown_ps})


def test_a_breakdown_that_adds_up_is_accepted() -> None:
    assert record_of(7, {"wire": 4, "wait": 3}).breakdown_ps == {"wire": 4, "wait": 3}


@pytest.mark.parametrize("breakdown_ps", [{}, {"wire": 6}, {"wire": 4, "wait": 4}])
def test_a_breakdown_that_does_not_add_up_to_the_total_is_refused(
    breakdown_ps: dict[str, int],
) -> None:
    with pytest.raises(
        ValidationError, match=r"breakdown_ps adds up to \d, but totals\.time_ps is 7"
    ):
        record_of(7, breakdown_ps)


def test_a_lower_bound_above_the_total_is_refused() -> None:
    with pytest.raises(ValidationError, match="lower bound 'wire' is 8, above totals"):
        record_of(7, {"wire": 7}, bounds_ps={"wire": 8})


@pytest.mark.parametrize(
    "fields",
    [
        {"colour": "red"},
        {"machine_hash": "not a hash"},
        {"utilisation": {"link": 1.01}},
        {"utilisation": {"link": float("nan")}},
        {"counters": {"gathers": -1}},
        {"counters": {"gathers": 1.0}},
        {"counters": {"gathers": True}},
        {"schema_version": 2},
        {"seed": "7"},
    ],
)
def test_a_field_that_is_unknown_or_wrong_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        record_of(7, {"wire": 7}, **fields)


def test_a_record_cannot_be_changed() -> None:
    record = record_of(7, {"wire": 7})
    with pytest.raises(ValidationError, match="frozen"):
        record.seed = 3  # type: ignore[misc]
