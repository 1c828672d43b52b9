"""What a command hands back, and the option that every command declares."""

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import RenderableType

from tilewright.records import Document

# The shell acts on --json; a command declares it as ``_json`` for the parser and for --help.
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on standard output and nothing else."),
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished command: the document for programs, the view for people, the verdict for both."""

    record: Document
    view: RenderableType
    passed: bool = True
    is_interrupted: bool = False  # by the user: the document says what was known by then
