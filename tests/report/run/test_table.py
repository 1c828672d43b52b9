"""The table of a run: what stands in it, and what only stands there when it matters."""

from typing import Any

import pytest

from tests.records.run_records import run_record
from tilewright.records import LaunchRow, RunParts
from tilewright.records.run.part import FlaggedAccess, SanitizerFinding
from tilewright.report.run.table import run_view


def text_of(**fields: Any) -> str:
    return run_view(run_record(**fields)).plain


def row(name: str, *, is_measured: bool = True) -> LaunchRow:
    return LaunchRow(
        name=name, num_programs=8, num_pes=8, submitted_ps=0, latency_ps=7_000, dispatch_ps=1_000,
        execution_ps=5_000, completion_ps=1_000, skew_ps=500, last_pe="sip0.cube0.pe7",
        is_measured=is_measured,
    )  # fmt: skip


def test_small_parts_are_one_line_and_shares_have_bars() -> None:
    parts = RunParts(gemm=9_980, vector=10, issue=10)
    lines = text_of(latency_ps=10_000, breakdown_ps=parts).splitlines()
    (gemm,) = [line for line in lines if line.startswith("  the GEMM unit")]
    assert gemm.split()[-1] == "#" * 24
    (rest,) = [line for line in lines if line.startswith("  all the rest")]
    assert rest.split()[3:5] == ["20", "ps"]


def test_the_longest_lines_come_first() -> None:
    lines_ps = {f"op{n} k.py:{n}": 10 * n for n in range(9)}
    text = text_of(latency_ps=1_000, lines_ps=lines_ps)
    shown = [line.split()[0] for line in text.splitlines() if line.startswith("  op")]
    assert shown == ["op8", "op7", "op6", "op5", "op4"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"values_ok": True, "max_error": 1e-4, "tolerance": 2e-3}, "ok: error 1.0e-04"),
        (
            {"values_ok": False, "ok": False, "max_error": 0.1, "tolerance": 2e-3},
            "WRONG: error 1.0e-01",
        ),
        (
            {"values_ok": False, "ok": False, "tolerance": 2e-3},
            "WRONG: error no finite number",
        ),
        ({}, "not checked"),
        ({"status": "interrupted", "ok": False}, "INTERRUPTED"),
        ({"failures": ("too fast",), "ok": False}, "CHECK FAILED"),
        ({"findings": ()}, "no wrong access"),
        ({"bound_ps": 5, "ratio": 1.4, "bound_resource": "HBM"}, "5 ps, of HBM\n"),
        (
            {"bound_ps": 5, "ratio": 1.4, "bound_resource": "HBM", "bound_latency_ps": 3},
            "5 ps, of HBM: 3 ps of latency, 2 ps of work\n",
        ),
        (
            {"bound_ps": 5, "ratio": 1.4, "bound_resource": "latency", "bound_latency_ps": 5},
            "5 ps, of latency\n",
        ),
        ({"notes": ("a note",)}, "a note\n"),
    ],
)
def test_what_matters_is_in_the_table(fields: dict[str, Any], words: str) -> None:
    assert words in text_of(**fields)


def test_one_launch_needs_no_rows_and_unmeasured_ones_are_marked() -> None:
    assert "\nlaunches\n" not in text_of(launches=(row("one"),))
    text = text_of(launches=(row("warm up", is_measured=False), row("one")))
    assert "\n- warm up" in text
    assert "\n  one" in text
    assert "outside of what is measured" in text


def test_wrong_accesses_are_told_with_both_sides() -> None:
    side = FlaggedAccess(what="store", actor="program 0", line="k.py:3", at_ps=2_000, num_bytes=4)
    late = FlaggedAccess(what="load", actor="program 1", line="", at_ps=None, num_bytes=4)
    found = SanitizerFinding(
        kind="race", tensor="x", element="x[0]", num_bytes=4, detail="no order", count=2,
        sides=(side, late),
    )  # fmt: skip
    text = text_of(findings=(found,), ok=False)
    assert "1. race: 4 bytes from x[0] of x, 2 times" in text
    assert "store by program 0, k.py:3, at 2 ns" in text
    assert "load by program 1, before it is served" in text
