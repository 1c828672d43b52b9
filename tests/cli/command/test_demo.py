"""The demonstration: what a stranger sees, what a program reads, what Ctrl-C does."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interrupts import interruptible_children
from tests.studies.demo_records import demo_record
from tilewright.cli.app import run
from tilewright.cli.command import demo as command
from tilewright.engine import AUTO, native_built, resolve_engine
from tilewright.records.demo import DemoRecord
from tilewright.studies.demo.command import PAGE_FILE, TRACE_FILE, plan_demo
from tilewright.studies.demo.page import NEXT, meaning_of
from tilewright.studies.demo.steps import DemoPlan

COMMAND = (sys.executable, "-m", "tilewright", "demo")


def show(
    record: DemoRecord,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str,
) -> tuple[int, str]:
    """Exit status, and what is on standard output."""
    monkeypatch.setattr(command, "run_demo", lambda *_, **__: record)
    monkeypatch.setenv("COLUMNS", "80")
    status = run(["demo", *arguments])
    return status, capsys.readouterr().out


def words(shown: str) -> str:
    return " ".join(shown.split())


def test_the_demo_shows_a_row_for_each_flow_with_quality_time_bytes_and_bottleneck(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = show(demo_record(), monkeypatch, capsys)
    assert status == 0
    rows = {line.split()[0]: words(line) for line in shown.splitlines() if line.strip()}
    assert rows["dense"] == "dense 16/16 100 % 78.6 us 1.0x 315 us 1.0x 6.1 GiB HBM 91 %"
    assert rows["Quest"].startswith("Quest 16/16 97 % 8.74 us 9.0x 35 us 9.0x")
    assert rows["StreamingLLM"].startswith("StreamingLLM 4/16 25 %")


def test_the_table_fits_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, shown = show(demo_record(), monkeypatch, capsys)
    lines = shown.splitlines()
    head = next(line for line in lines if line.lstrip().startswith("flow"))
    assert all(name in head for name in ("needles", "mass", "32K", "128K", "bytes"))
    assert max(map(len, lines)) <= 80
    assert "…" not in shown


def test_two_sentences_say_what_it_means_and_three_commands_come_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = words(show(demo_record(), monkeypatch, capsys)[1])
    assert all(sentence in shown for sentence in meaning_of(demo_record()))
    assert len(NEXT) == 3
    assert all(command in shown for command in NEXT)


def test_the_files_that_were_written_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, shown = show(demo_record(), monkeypatch, capsys)
    assert "tilewright-demo.html" in shown
    assert "tilewright-demo.pftrace" in shown


def test_with_json_the_record_is_all_that_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = demo_record()
    _, shown = show(record, monkeypatch, capsys, "--json")
    assert DemoRecord.model_validate_json(shown) == record


def test_wrong_values_are_named_and_fail_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = show(demo_record(values_ok=False), monkeypatch, capsys)
    assert status == 1
    assert "WRONG values: dense, Quest" in words(shown)


def test_the_batch_is_that_of_the_steps_without_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans: list[DemoPlan] = []

    def remembered(plan: DemoPlan, **_: object) -> DemoRecord:
        plans.append(plan)
        return demo_record()

    monkeypatch.setattr(command, "run_demo", remembered)
    assert run(["demo", "--batch", "3"]) == 0
    assert run(["demo"]) == 0
    usual = plan_demo(resolve_engine(AUTO, native_built=native_built()))
    assert [plan.sizes.batch for plan in plans] == [3, usual.sizes.batch]
    assert capsys.readouterr().out


def test_a_directory_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["demo", "--out", str(tmp_path / "missing"), "--json"])
    assert status == 2
    assert json.loads(capsys.readouterr().out)["error"]["found"].startswith("no directory")


def test_ctrl_c_ends_the_demo_with_130_and_leaves_older_files_as_they_were(tmp_path: Path) -> None:
    for name in (PAGE_FILE, TRACE_FILE):
        (tmp_path / name).write_text("older")
    with interruptible_children():
        process = subprocess.Popen(
            (*COMMAND, "--out", str(tmp_path)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert process.stderr is not None
    told = [process.stderr.readline() for _ in range(2)]  # the engine, then the first step
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told[0].startswith("engine: ")
    assert output == ""
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("interrupted")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        PAGE_FILE: "older",
        TRACE_FILE: "older",
    }
