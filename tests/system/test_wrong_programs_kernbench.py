"""KernBench programs with a mistake, through the command line: what it says about them."""

import re
from pathlib import Path

import pytest

from tests.system.wrong_kernbench import WRONG, WrongProgram
from tilewright.cli.main import main

PROGRAM = "program.py"
FORM = re.DOTALL | re.MULTILINE


def files_of(wrong: WrongProgram, directory: Path) -> list[str]:
    """Write a program and what it needs, and return the command line that runs it."""
    for name, text in {PROGRAM: wrong.text, **wrong.beside}.items():
        (directory / name).write_text(text)
    machine = "ahbm-small"
    if wrong.topology is not None:
        (directory / "machine_topology.yaml").write_text(wrong.topology)
        machine = str(directory / "machine.yaml")
        imported = ["machine", "import", str(directory / "machine_topology.yaml"), "-o", machine]
        assert main(imported) == 0
    return ["run", str(directory / PROGRAM), "--machine", machine, "--once"]


def place_of(wrong: WrongProgram) -> str:
    """Return the file and the line that the message has to name."""
    if wrong.place:
        return wrong.place
    lines = wrong.text.splitlines()
    number = next(at for at, line in enumerate(lines, start=1) if line.endswith("# here"))
    return f"{PROGRAM}:{number}"


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_ends_with_status_2_and_a_message_that_names_place_and_remedy(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = WRONG[name]
    command = files_of(wrong, tmp_path)
    capsys.readouterr()
    status = main(command)
    output, errors = capsys.readouterr()
    assert (status, output) == (2, ""), errors
    assert "Traceback" not in errors
    assert re.search(re.escape(place_of(wrong)) + r"\b", errors), errors
    assert re.search(r"^error: .+^  found .+^  expected .+^  to do ", errors, FORM), errors
    told = ".*".join(map(re.escape, wrong.words))
    assert re.search(told, errors, re.DOTALL), errors
