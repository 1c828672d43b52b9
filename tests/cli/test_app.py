"""The program's own help and options, and that a command line loads no more than it names."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tilewright.cli.app import build_command, run
from tilewright.cli.group import COMMANDS, list_commands
from tilewright.cli.shell import named_command

HEAVY = (
    "numpy",
    "pydantic",
    "rich",
    "tilewright.attention",
    "tilewright.host",
    "tilewright.machine",
)
LOADED = f"""
import sys
from tilewright.cli.main import main
status = main(sys.argv[1:])
print(status, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
LISTS = [[], ["machine"], ["attention"], ["bench"]]


def lines(folder: Path = COMMANDS, *before: str) -> Iterator[list[str]]:
    """The words of every command that does something."""
    for name, entry in list_commands(folder).items():
        if entry.function:
            yield [*before, name]
        else:
            yield from lines(folder / name, *before, name)


def loaded_by(*arguments: str) -> list[str]:
    """The exit status, and which of the heavy packages a command line has loaded."""
    command = (sys.executable, "-c", LOADED, *arguments)
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stderr.split()


LINES = list(lines())


@pytest.mark.parametrize("option", ["-h", "--help", "--version"])
def test_help_and_the_version_load_no_library(option: str) -> None:
    assert loaded_by(option) == ["0"]


@pytest.mark.parametrize("group", ["machine", "attention", "bench"])
def test_the_help_of_a_group_loads_none_of_its_commands(group: str) -> None:
    found = loaded_by(group, "--help")
    found.remove("0")
    assert found in ([], ["pydantic"])  # by which Typer reads the options before the group


def test_a_command_that_does_not_exist_loads_no_other() -> None:
    assert "numpy" not in loaded_by("no-such-command")
    assert "numpy" not in loaded_by("machine", "no-such-command")


def test_a_look_at_a_machine_loads_neither_attention_nor_the_host() -> None:
    found = loaded_by("machine", "show", "--help")
    assert "tilewright.machine" in found
    assert {"tilewright.attention", "tilewright.host"}.isdisjoint(found)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_list_says_of_a_command_what_the_command_says_itself(line: list[str]) -> None:
    root = build_command()
    listed: Any = root
    for word in line:
        listed = listed.commands[word]
    words, command = named_command(root, line)
    assert words == " ".join(["tilewright", *line])
    assert command is not listed
    assert command.help.splitlines()[0] == listed.help


@pytest.mark.parametrize("line", [*LISTS, *LINES], ids=" ".join)
def test_h_is_help_everywhere(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for option in ("-h", "--help"):
        assert run([*line, option]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "-h, --help" in shown[0]
    assert shown[0].startswith(f"Usage: {' '.join(['tilewright', *line])} ")


@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_a_list_of_commands_says_whole_sentences_on_a_narrow_terminal(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*arguments, "--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Commands:\n")
    assert [line for line in listed.splitlines() if not line.endswith(".") or "..." in line] == []
    assert len(listed.splitlines()) >= 2


def test_the_parser_of_a_command_is_there_when_its_words_have_been_resolved() -> None:
    _, command = named_command(build_command(), ["--json", "machine", "check", "show"])
    assert isinstance(command, typer.core.TyperCommand)
    assert "--set" in {name for each in command.params for name in each.opts}
