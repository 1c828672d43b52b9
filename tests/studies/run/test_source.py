"""Programs by name and by file, and what is said of files that are no programs."""

from pathlib import Path

import pytest

from tests.studies.run_programs import SCALE, run_file, written
from tilewright.errors import BenchError, ProgramError, TilewrightError
from tilewright.programs import PROGRAMS
from tilewright.studies.run.source import find_source


def test_a_ready_program_is_found_by_its_name() -> None:
    source = find_source("qkv_gemm")
    assert (source.name, source.file) == ("qkv_gemm", None)
    assert source.parameters == PROGRAMS["qkv_gemm"].parameters


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(BenchError, match=r"no program 'qkv_gem'.*did you mean 'qkv_gemm'\?"):
        find_source("qkv_gem")


def test_a_file_tells_its_parameters_and_hash(tmp_path: Path) -> None:
    source = find_source(str(written(tmp_path, SCALE)))
    assert [(each.name, each.default) for each in source.parameters] == [("n", 4096), ("times", 2)]
    again = find_source(str(written(tmp_path, SCALE + "\n")))
    assert source.file_hash != again.file_hash


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("def run(torch:\n", ProgramError, r"mine\.py:1: found a syntax error"),
        ("x = 1\0\n", ProgramError, r"mine\.py:1: found a syntax error"),
        pytest.param(
            "-" * 100_000 + "1\n",
            ProgramError,
            r"mine\.py.*: found (Memory|Recursion)Error",
            id="deep",
        ),
        (f"import {'n' * 300}\n", ProgramError, r"mine\.py:1 in <module>: found .*Error"),
        ("1 / 0\n", ProgramError, r"mine\.py:1 in <module>: found ZeroDivisionError"),
        ("import nowhere\n", ProgramError, r"mine\.py:1 in <module>: found ModuleNotFoundError"),
        ("x = 1\n", BenchError, r"mine\.py: found no function named run"),
        ("run = 7\n", BenchError, r"mine\.py: found run = 7"),
        ("def run(torch, n):\n    pass\n", BenchError, "a parameter 'n' without a default"),
    ],
)
def test_a_file_that_is_no_program_is_refused_with_its_line(
    tmp_path: Path, text: str, error: type[TilewrightError], words: str
) -> None:
    with pytest.raises(error, match=words):
        find_source(str(written(tmp_path, text)))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no\.py: found a file that cannot be read"):
        find_source(str(tmp_path / "no.py"))


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ("x.nothing()", ProgramError, r"mine\.py:18 in run: found AttributeError"),
        ("raise SystemExit(3)", ProgramError, r"mine\.py:18 in run: found SystemExit: 3"),
        ("torch.zeros((4,), 'f33', dp=ROWS)", TilewrightError, r"mine\.py:18 in run, .*'f33'"),
        ("torch.launch(lambda x: None)", TilewrightError, r"mine\.py:18 in run"),
    ],
)
def test_what_fails_in_a_program_is_told_by_its_line(
    tmp_path: Path, line: str, error: type[TilewrightError], words: str
) -> None:
    with pytest.raises(error, match=words):
        run_file(written(tmp_path, f"{SCALE}    {line}\n"), n=64)


def test_a_mistake_in_a_kernel_is_told_by_the_kernel_s_line(tmp_path: Path) -> None:
    text = SCALE.replace("* 2.0", "* 'two'")
    with pytest.raises(TilewrightError, match=r"mine\.py:11 in scale, program \(0, 0, 0\)"):
        run_file(written(tmp_path, text), n=64)


def test_a_file_is_loaded_anew_for_each_execution(tmp_path: Path) -> None:
    """A counter at the top of the file starts again, so both executions are alike."""
    text = SCALE.replace("ROWS =", "CALLS = []\nROWS =").replace(
        "    x = torch", "    CALLS.append(1)\n    times = len(CALLS)\n    x = torch"
    )
    record = run_file(written(tmp_path, text))
    assert len(record.launches) == 1
    assert record.breakdown_ps.execution == 0
