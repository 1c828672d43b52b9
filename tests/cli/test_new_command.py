"""A new command is one new file in ``cli/command``, and nothing else."""

import json
from pathlib import Path

import pytest

from tests.changed_package import copy_package, output_of

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


MAIN = """
from tilewright.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize("group", ["", "machine"])
def test_a_new_command_is_one_file(group: str, tmp_path: Path) -> None:
    folder = copy_package(tmp_path, "cli") / "cli" / "command" / group
    (folder / "hello.py").write_text(COMMAND, encoding="utf-8")
    words = [group, "hello"] if group else ["hello"]
    listed = output_of(tmp_path, MAIN, *words[:-1], "--help").splitlines()
    assert listed[-1].split(maxsplit=1) == ["hello", "Greet somebody."]
    assert "tilewright hello world" in output_of(tmp_path, MAIN, *words, "--help")
    assert output_of(tmp_path, MAIN, *words, "you") == "hello you\n"
    assert json.loads(output_of(tmp_path, MAIN, *words, "you", "--json")) == {"text": "hello you"}
