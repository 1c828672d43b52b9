"""What is said of a run follows from its figures."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.run_records import FIGURES, run_record
from tilewright.records import LaunchRow, MachineOfRun, RunParts, RunRecord
from tilewright.report.explain.run import explain_run

HBM = "sip0.cube0.hbm_ctrl.pe0"


def launch(num_pes: int, skew_ps: int = 0) -> LaunchRow:
    return LaunchRow(
        name="k", num_programs=num_pes, num_pes=num_pes, submitted_ps=0, latency_ps=1000,
        dispatch_ps=0, execution_ps=1000, completion_ps=0, skew_ps=skew_ps, last_pe=None,
        is_measured=True,
    )  # fmt: skip


def texts_of(record: RunRecord) -> dict[str, str]:
    """By topic."""
    found = explain_run(record, "run.json").remarks
    return {remark.topic: remark.text for remark in found}


def explained(parts: RunParts, **fields: Any) -> dict[str, str]:
    return texts_of(run_record(parts.total_ps, breakdown_ps=parts, **fields))


def test_the_parts_come_greatest_first_with_their_shares() -> None:
    record = run_record(100, breakdown_ps=RunParts(gemm=10, memory_read=90))
    found = explain_run(record, "run.json")
    assert [(part.part, part.share) for part in found.parts] == [
        ("memory_read", 0.9),
        ("gemm", 0.1),
    ]


def test_a_full_slice_means_bandwidth_and_an_idle_one_latency() -> None:
    parts = RunParts(memory_read=900, gemm=100)
    full = explained(parts, utilisation={HBM: 0.92, "pe0.gemm": 0.1}, launches=(launch(8),))
    assert "HBM-bound: 90 % of the time" in full["memory"]
    assert "Fewer bytes would help" in full["memory"]
    idle = explained(parts, utilisation={HBM: 0.25})
    assert "Memory latency: 90 % of the time" in idle["memory"]
    assert "no slice is in use more than 25 % of the time" in idle["memory"]
    assert "memory" not in explained(RunParts(memory_read=300, gemm=700), utilisation={HBM: 0.9})


def test_a_full_sram_is_named_as_one() -> None:
    parts = RunParts(memory_read=900, gemm=100)
    found = explained(parts, utilisation={HBM: 0.2, "sip0.cube0.sram": 0.92})
    assert "SRAM-bound: 90 % of the time" in found["memory"]
    assert "sip0.cube0.sram is in use 92 % of the time" in found["memory"]


def test_the_achieved_rate_stands_beside_the_peak_of_the_slices_that_are_used() -> None:
    """8 of 32 PEs have a quarter of the machine's 6.99 TB/s."""
    counters = {"loaded_bytes": 1_000_000, "stored_bytes": 0}
    parts = RunParts(memory_read=1_000_000)
    found = explained(parts, utilisation={HBM: 0.9}, num_pes=8, counters=counters)
    assert "at 1 TB/s, 57 % of the refresh-limited peak of the slices of 8 PEs" in found["memory"]


def test_a_bound_tells_what_can_be_gained_and_who_is_next() -> None:
    fields: dict[str, Any] = {
        "bound_ps": 500, "ratio": 2.0, "bound_resource": "HBM",
        "bounds_ps": {"HBM": 500, "GEMM unit": 400},
    }  # fmt: skip
    record = run_record(1000, **fields)
    one, other = (
        remark.text for remark in explain_run(record, "run.json").remarks if remark.topic == "bound"
    )
    assert "2.00 times the lower bound, 500 ps of HBM: 50 % of it" in one
    assert "would lower the bound to 400 ps, then of GEMM unit" in other


def test_twice_a_rate_leaves_the_latencies_of_a_bound() -> None:
    fields: dict[str, Any] = {
        "bound_ps": 500, "ratio": 2.0, "bound_resource": "HBM", "bound_latency_ps": 300,
        "bounds_ps": {"HBM": 500, "latency": 350},
    }  # fmt: skip
    record = run_record(1000, **fields)
    texts = [remark.text for remark in explain_run(record, "run.json").remarks]
    assert any("would lower the bound to 400 ps, then of HBM" in text for text in texts)


def test_nobody_is_told_to_double_the_rate_of_a_latency() -> None:
    fields: dict[str, Any] = {
        "bound_ps": 500, "ratio": 2.0, "bound_resource": "latency", "bound_latency_ps": 500,
        "bounds_ps": {"HBM": 400, "latency": 500},
    }  # fmt: skip
    (text,) = (
        remark.text
        for remark in explain_run(run_record(1000, **fields), "run.json").remarks
        if remark.topic == "bound"
    )
    assert "500 ps of latency: 50 % of it is more than every schedule needs" in text


def test_twice_the_pes_halve_only_what_can_be_shared() -> None:
    parts = RunParts(dispatch=200, gemm=800)
    assert "about 600 ps, 1.67 times as fast" in explained(parts, num_pes=8)["scaling"]
    assert "there are not twice as many" in explained(parts, num_pes=32)["scaling"]


def test_pes_of_launches_side_by_side_are_added_up() -> None:
    launches = (launch(16), launch(16))
    found = explained(RunParts(gemm=1000), launches=launches, num_pes=32)["scaling"]
    assert "It uses 32 of 32 PEs" in found


def test_dispatch_gets_less_with_more_work() -> None:
    text = explained(RunParts(dispatch=60, completion=40, gemm=100))["overhead"]
    assert "100 ps, 50 %" in text
    assert "with 8 times the work in a launch it would be 11 %" in text  # 100 / 900


def test_a_part_is_told_with_the_fields_that_set_it() -> None:
    fields: dict[str, Any] = {"pe.vector.lanes": 512, "pe.vector.hz": 10**9}
    machine = MachineOfRun(name="ahbm", source="ahbm", figures=FIGURES, fields=fields)
    text = explained(RunParts(vector=60, other=40), machine=machine)["vector"]
    assert text.startswith("The vector unit: 60 ps, 60 %;")
    assert "pe.vector.lanes (512)" in text


@pytest.mark.parametrize(
    ("fields", "topic", "words"),
    [
        ({"values_ok": False, "ok": False}, "values", "values are wrong"),
        ({"status": "interrupted", "ok": False}, "interrupted", "was interrupted"),
        ({"failures": ("too fast",), "ok": False}, "check", "too fast"),
        ({"lines_ps": {"dot k.py:3": 400, "a": 1}}, "line", "dot k.py:3 has the most of the path"),
        ({"counters": {"gathers": 3}}, "gathers", "3 accesses had to wait"),
        ({"counters": {"spilled_bytes": 2048}}, "spilling", "2 KiB did not fit"),
        ({"launches": (launch(8, skew_ps=100),)}, "skew", "100 ps apart, 10 %"),
    ],
)
def test_what_is_remarkable_is_said_and_nothing_else(
    fields: dict[str, Any], topic: str, words: str
) -> None:
    assert words in texts_of(run_record(1000, **fields))[topic]
    assert topic not in texts_of(run_record(1000))


@given(
    times=st.lists(st.integers(0, 10**9), min_size=16, max_size=16),
    use=st.floats(0, 1),
    num_pes=st.integers(0, 32),
)
def test_any_record_can_be_explained(times: list[int], use: float, num_pes: int) -> None:
    parts = RunParts(**dict(zip(RunParts.model_fields, times, strict=True)))
    record = run_record(parts.total_ps, breakdown_ps=parts, utilisation={HBM: use}, num_pes=num_pes)
    found = explain_run(record, "run.json")
    assert sum(part.time_ps for part in found.parts) == record.latency_ps
