"""The table of commands, and that a command line loads no more than it names."""

import subprocess
import sys

import pytest
import typer

from tilewright.cli.app import COMMANDS, build_app, run

LOADED = """
import sys
from tilewright.cli.app import build_app
build_app(["machine", "show"])
print(*(name for name in ("tilewright.attention", "tilewright.host") if name in sys.modules))
"""


def names_of(arguments: list[str]) -> list[str]:
    command = typer.main.get_command(build_app(arguments))
    return list(command.commands) if isinstance(command, typer.core.TyperGroup) else []


@pytest.mark.parametrize("arguments", [[], ["--help"], ["lst"], ["--json", "--version"]])
def test_a_line_that_names_no_command_finds_all_of_them(arguments: list[str]) -> None:
    assert names_of(arguments) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_that_names_a_command_finds_it_alone(name: str) -> None:
    assert names_of([name, "--help"]) == [name]


@pytest.mark.parametrize("arguments", [[], ["machine"], ["attention"], ["bench"]])
def test_a_list_of_commands_says_whole_sentences_on_a_narrow_terminal(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*arguments, "--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Commands:\n")
    assert [line for line in listed.splitlines() if not line.endswith(".") or "..." in line] == []
    assert len(listed.splitlines()) >= 2


def test_a_version_needs_no_command() -> None:
    assert names_of(["--version"]) == []


def test_a_look_at_a_machine_loads_neither_attention_nor_the_host() -> None:
    command = (sys.executable, "-c", LOADED)
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
