"""A new command is one new file in ``cli/command``, and nothing else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

COMMAND = """
from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.outcome import Outcome
from tilewright.records import Document


class Greeting(Document):
    text: str


def hello(name: Annotated[str, typer.Argument(help="Whom to greet.")]) -> Outcome:
    \"\"\"Greet somebody.

    tilewright hello world
    \"\"\"
    record = Greeting(text=f"hello {name}")
    return Outcome(record, Text(record.text))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package like this one whose commands are a copy."""
    package = Path(tilewright.__file__).parent
    (tmp_path / "tilewright").mkdir()
    for each in package.iterdir():
        target = tmp_path / "tilewright" / each.name
        if each.name == "cli":
            shutil.copytree(each, target)
        else:
            target.symlink_to(each)
    return tmp_path


IN_CHECKOUT = """
import sys
# an editable install finds the package by a hook, before any path is looked at
sys.meta_path = [each for each in sys.meta_path if not type(each).__module__.startswith("_edit")]
sys.path.insert(0, sys.argv.pop(1))
from tilewright.cli.main import main
sys.exit(main())
"""


def output_of(checkout: Path, *arguments: str) -> str:
    command = (sys.executable, "-c", IN_CHECKOUT, str(checkout), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("group", ["", "machine"])
def test_a_new_command_is_one_file(group: str, checkout: Path) -> None:
    folder = checkout / "tilewright" / "cli" / "command" / group
    (folder / "hello.py").write_text(COMMAND, encoding="utf-8")
    words = [group, "hello"] if group else ["hello"]
    listed = output_of(checkout, *words[:-1], "--help").splitlines()
    assert listed[-1].split(maxsplit=1) == ["hello", "Greet somebody."]
    assert "tilewright hello world" in output_of(checkout, *words, "--help")
    assert output_of(checkout, *words, "you") == "hello you\n"
    assert json.loads(output_of(checkout, *words, "you", "--json")) == {"text": "hello you"}
