"""The demonstration as a process: what a stranger sees, what a program reads, what Ctrl-C does."""

import json
import signal
import subprocess
import sys
import time

import pytest

from tilewright.engine import native_built

COMMAND = (sys.executable, "-m", "tilewright.cli", "demo")


@pytest.mark.timeout(120)
def test_the_demo_prints_one_document_in_which_all_results_are_equal() -> None:
    run = subprocess.run((*COMMAND, "--json"), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    digests = {(row["workload"], row["digest"]) for row in document["workloads"]}
    assert document["identical"] is True
    assert len(digests) == 3
    engines = {row["implementation"] for row in document["workloads"]}
    assert engines == ({"reference", "native"} if native_built() else {"reference"})


@pytest.mark.timeout(120)
def test_the_demo_says_which_engine_runs_and_what_the_table_means() -> None:
    run = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert run.stderr.startswith("engine: ")
    assert "finite buffers" in run.stdout
    assert "Next:" in run.stdout


def test_ctrl_c_ends_the_demo_with_130_and_one_line() -> None:
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()  # the engine's line: the demo runs
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output == ""
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("interrupted")
