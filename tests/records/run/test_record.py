import pytest
from pydantic import ValidationError

from tests.records.run_records import run_record
from tilewright.records import LaunchRow, RunParts

LAUNCH = {
    "name": "gemm",
    "num_programs": 8,
    "num_pes": 8,
    "submitted_ps": 0,
    "latency_ps": 9,
    "dispatch_ps": 2,
    "execution_ps": 6,
    "completion_ps": 1,
    "skew_ps": 1,
    "last_pe": "sip0.cube0.pe7",
    "is_measured": True,
}


def test_a_breakdown_that_adds_up_is_accepted() -> None:
    record = run_record(7, breakdown_ps=RunParts(gemm=4, memory_read=3))
    assert record.breakdown_ps.total_ps == record.latency_ps == 7


@pytest.mark.parametrize("parts", [{}, {"gemm": 6}, {"gemm": 4, "other": 4}])
def test_a_breakdown_that_does_not_add_up_to_the_latency_is_refused(parts: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=r"breakdown_ps adds up to \d, but latency_ps is 7"):
        run_record(7, breakdown_ps=RunParts(**parts))


@pytest.mark.parametrize("fields", [{"bound_ps": 5}, {"ratio": 1.5}, {"bound_ps": 0, "ratio": 1.0}])
def test_a_ratio_without_its_bound_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="ratio is there if, and only if, bound_ps is"):
        run_record(7, **fields)


@pytest.mark.parametrize("bound_ps", [None, 5])
def test_a_bound_with_more_latency_than_it_has_is_refused(bound_ps: int | None) -> None:
    ratio = None if bound_ps is None else 1.4
    with pytest.raises(ValidationError, match="bound_latency_ps is more than bound_ps"):
        run_record(7, bound_ps=bound_ps, ratio=ratio, bound_latency_ps=6)


def test_a_bound_without_latencies_is_read_as_it_was_written() -> None:
    record = run_record(7, bound_ps=5, ratio=1.4, bounds_ps={"HBM": 5})
    assert record.bound_latency_ps is None


@pytest.mark.parametrize(
    "fields", [{"values_ok": False}, {"failures": ("too fast",)}, {"status": "interrupted"}]
)
def test_a_run_that_is_not_right_is_not_ok(fields: dict[str, object]) -> None:
    assert not run_record(7, ok=False, **fields).ok
    with pytest.raises(ValidationError, match="ok must be true if, and only if"):
        run_record(7, ok=True, **fields)


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
        {"schema_version": 3},
        {"seed": "7"},
        {"status": "half done"},
        {"bound_ps": 9, "ratio": -0.5},
    ],
)
def test_a_field_that_is_unknown_or_wrong_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        run_record(7, **fields)


def test_a_record_cannot_be_changed() -> None:
    record = run_record(7)
    with pytest.raises(ValidationError, match="frozen"):
        record.seed = 3  # type: ignore[misc]


def test_a_launch_whose_parts_add_up_is_accepted() -> None:
    assert LaunchRow.model_validate(LAUNCH).latency_ps == 9


def test_a_launch_whose_parts_do_not_add_up_is_refused() -> None:
    with pytest.raises(ValidationError, match="parts of launch 'gemm' add up to 10"):
        LaunchRow.model_validate(LAUNCH | {"completion_ps": 2})
