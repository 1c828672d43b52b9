"""A program run from Python is what the command runs."""

import json
from pathlib import Path

import pytest

from tests.studies.run_programs import SCALE, written
from tilewright.cli.main import main
from tilewright.engine import EngineKind
from tilewright.errors import BenchError, UsageError
from tilewright.machine import load_machine
from tilewright.records import canonical_json
from tilewright.studies.run.command import run


def test_the_record_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    changes = ("--param", "k=64", "--set", "pe.gemm.hz=2000000000", "--phases", "2", "--seed", "3")
    line = ["run", "gemm_single_pe", "--machine", "ahbm-small", *changes, "--json"]
    assert main(line) == 0
    printed = capsys.readouterr().out
    record = run(
        "gemm_single_pe",
        {"k": 64},
        machine="ahbm-small",
        overrides=["pe.gemm.hz=2000000000"],
        seed=3,
        phases=2,
    )
    assert json.loads(canonical_json(record)) == json.loads(printed)


def test_a_file_runs_on_a_machine_that_is_built(tmp_path: Path) -> None:
    file = written(tmp_path, SCALE)
    built = load_machine("ahbm-small", ["pe.vector.lanes=1024"])
    record = run(file, machine=built, once=True, engine=EngineKind.REFERENCE)
    assert record.what.program == str(file)
    assert record.versions.engine == "reference"
    assert record.machine.name == "ahbm-small"
    assert record.machine.is_own  # no preset or file says what it is
    assert record.machine.fields["pe.vector.lanes"] == 1024


def test_without_a_machine_the_programs_own_is_taken() -> None:
    record = run("pointer_chase", data=False, once=True)
    assert record.machine.source == "ahbm"


def test_what_no_program_has_is_refused() -> None:
    with pytest.raises(BenchError, match="no program 'qkv_gem'"):
        run("qkv_gem")
    with pytest.raises(BenchError, match="a parameter 'q'"):
        run("gemm_single_pe", {"q": 1})
    with pytest.raises(UsageError, match="give them to load_machine"):
        run("softmax", machine=load_machine("ahbm-small"), overrides=["pe.gemm.hz=1"])
