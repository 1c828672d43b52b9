"""``tilewright run`` in processes of their own: Ctrl-C, and equal bytes each time."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.interrupts import backgrounds, interruptible_children, with_interrupt_handler
from tests.report.perfetto.read_trace import read_trace
from tests.studies.run_programs import SCALE, written
from tilewright.records import RunRecord, read_record

SMALL = ("--machine", "ahbm-small")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tilewright", "run", *arguments, *SMALL]


@backgrounds
def test_ctrl_c_in_the_middle_of_a_run_leaves_a_record_and_ends_with_130(
    tmp_path: Path, handler: Any
) -> None:
    text = SCALE + "        print('launched', flush=True)\n"
    program, file, trace = written(tmp_path, text), tmp_path / "run.json", tmp_path / "trace"
    files = ("--record", str(file), "--trace", str(trace))
    endless = ("--param", "times=1000000", "--param", "n=64", "--json", *files)
    with with_interrupt_handler(handler), interruptible_children():
        process = subprocess.Popen(
            command(str(program), *endless),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        assert process.stderr is not None
        while "launched" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=50)
    assert process.returncode == 130
    record = RunRecord.model_validate_json(output)
    assert record == read_record(file, RunRecord)
    assert record.status == "interrupted"
    assert len(record.launches) >= 1
    assert len(read_trace(trace.read_bytes()).slices["host", "launches"]) == len(record.launches)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.py", "run.json", "trace"]


def test_a_run_writes_the_same_record_and_trace_whatever_the_hash_seed(tmp_path: Path) -> None:
    program = str(written(tmp_path, SCALE))
    found = []
    for seed in ("1", "2"):
        files = tmp_path / "run.json", tmp_path / "run.pftrace"
        options = ("--record", str(files[0]), "--trace", str(files[1]), "--param", "n=256")
        subprocess.run(
            command(program, *options),
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        found.append([file.read_bytes() for file in files])
    assert found[0] == found[1]


def test_a_run_in_the_background_of_a_script_goes_on_when_others_are_interrupted(
    tmp_path: Path,
) -> None:
    program = written(tmp_path, SCALE + "        print('launched', flush=True)\n")
    some = ("--param", "times=50", "--param", "n=64", "--json", "--once")
    with with_interrupt_handler(signal.SIG_IGN):
        process = subprocess.Popen(
            command(str(program), *some),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        assert process.stderr is not None
        while "launched" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=50)
    assert process.returncode == 0
    assert len(RunRecord.model_validate_json(output).launches) == 50


def test_ctrl_c_ends_a_kernel_that_asks_nothing_of_the_machine(tmp_path: Path) -> None:
    endless = """
def spin():
    print("spinning", flush=True)
    while True:
        pass


def run(torch):
    torch.launch(spin)
"""
    with interruptible_children():
        process = subprocess.Popen(
            command(str(written(tmp_path, endless)), "--once"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spinning\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=50)
    assert process.returncode == 130
    assert "Traceback" not in errors
