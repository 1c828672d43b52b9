"""The demonstration: what a stranger sees, what a program reads, what Ctrl-C does."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.benches.engine_speed import EngineWorkload
from tilewright.benches.workload import MeshSpec, mesh_load
from tilewright.cli import demo as command
from tilewright.cli.app import run
from tilewright.engine import native_built
from tilewright.records import DemoRecord
from tilewright.studies import demo
from tilewright.units import format_ps

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "tilewright.cli", "demo")


@pytest.mark.timeout(120)
def test_the_demo_prints_one_document_in_which_all_results_are_equal() -> None:
    run = subprocess.run((*COMMAND, "--json"), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    digests = {(row["workload"], row["digest"]) for row in document["workloads"]}
    assert document["identical"] is True
    assert document["probe"]["ok"] is True
    assert len(digests) == 3
    engines = {row["implementation"] for row in document["workloads"]}
    assert engines == ({"reference", "native"} if native_built() else {"reference"})
    assert run.stderr.startswith("engine: ")


def tiny_loads(seed: int) -> tuple[EngineWorkload, ...]:
    return (EngineWorkload("tiny", mesh_load(MeshSpec(4), 50, 0.5, seed), "a few messages"),)


@pytest.fixture(scope="module")
def record() -> DemoRecord:
    with pytest.MonkeyPatch.context() as patch:  # the loads of the real one take seconds
        patch.setattr(demo, "engine_workloads", tiny_loads)
        return demo.run_demo(progress=lambda _: None)


def show(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Exit status, and what is on standard output, in words with one space between them."""
    monkeypatch.setattr(command, "run_demo", lambda **_: record)
    status = run(["demo"])
    return status, " ".join(capsys.readouterr().out.split())


def test_the_demo_shows_the_machine_and_each_time_with_its_rate_and_its_greatest_part(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = show(record, monkeypatch, capsys)
    assert status == 0
    assert "2 packages (SIPs) of compute dies (cubes), 32 in all, with 256 processing" in shown
    small, large = (row for row in record.probe.cases if row.case == "pe_next_cube")
    name, part_ps = max(large.breakdown_ps, key=lambda part: part[1])
    assert (small.latency_ps, large.latency_ps) == (93_074, 606_574)
    assert f"pe_next_cube 93.074 ns 606.574 ns {large.ratio:.2f}" in shown
    assert f"{large.bandwidth_gbs:.1f} {name} {part_ps / large.latency_ps:.0%} pe_far" in shown


def test_the_sentences_of_the_demo_repeat_figures_of_its_table(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doubled = [
        row.model_copy(update={"bandwidth_gbs": 2 * row.bandwidth_gbs})
        for row in record.probe.cases
    ]
    probe = record.probe.model_copy(update={"cases": tuple(doubled)})
    _, shown = show(record.model_copy(update={"probe": probe}), monkeypatch, capsys)
    rates = {row.case: f"{row.bandwidth_gbs:.0f} GB/s" for row in doubled if row.bytes > 256}
    assert f"gets {rates['pe_local']} from its own slice" in shown
    assert f"(hot_8) share {rates['hot_8']};" in shown
    assert f"(east_port_8) share {rates['east_port_8']} of its port" in shown


def test_the_demo_says_how_much_of_a_distance_was_a_refresh_met_by_chance(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    far = next(row for row in record.probe.cases if row.case == "pe_other_sip")
    met = f"times as long ({format_ps(far.breakdown_ps.refresh)} of it a refresh). A PE"
    assert met in show(record, monkeypatch, capsys)[1]
    calm = far.model_copy(
        update={"breakdown_ps": far.breakdown_ps.model_copy(update={"refresh": 0})}
    )
    cases = tuple(calm if row is far else row for row in record.probe.cases)
    probe = record.probe.model_copy(update={"cases": cases})
    shown = show(record.model_copy(update={"probe": probe}), monkeypatch, capsys)[1]
    assert "times as long. A PE" in shown


def test_the_first_result_of_the_readme_is_what_the_demo_prints(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, shown = show(record, monkeypatch, capsys)
    first, last = shown.index("case 256 B"), shown.index("Distance (")
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert shown[first:last].strip() in readme


def test_a_check_that_does_not_hold_is_shown_and_fails_the_demo(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = record.probe.model_copy(update={"ok": False, "failures": ("hot_8 is too fast",)})
    status, shown = show(record.model_copy(update={"probe": probe}), monkeypatch, capsys)
    assert status == 1
    assert "These checks do NOT hold: hot_8 is too fast" in shown


def test_engines_that_disagree_fail_the_demo(
    record: DemoRecord, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = show(record.model_copy(update={"identical": False}), monkeypatch, capsys)
    assert status == 1
    assert "The engines DISAGREE" in shown


def test_ctrl_c_ends_the_demo_with_130_and_one_line() -> None:
    # a job in the background ignores Ctrl-C, and so would its children
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert process.stderr is not None
    process.stderr.readline()  # the engine's line: the demo runs
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output == ""
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("interrupted")
