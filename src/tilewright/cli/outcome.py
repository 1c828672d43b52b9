"""What a command hands back, and how that or a failure is printed: as text or as a document."""

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from tilewright.cli.output import PROGRAM, printable
from tilewright.errors import InternalError, TilewrightError
from tilewright.records import Document, canonical_json, describe_failure

# Every command has it: the shell acts on it, and a command that does, too, takes it as ``json``.
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

    @property
    def is_interrupted(self) -> bool:
        """By the user: the document says what was known by then."""
        return getattr(self.record, "status", "") == "interrupted"


@dataclass(frozen=True, slots=True)
class PrintableView:
    """A view whose text a terminal does not obey, in the styles that it has."""

    view: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.view, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def print_outcome(result: object, *, as_json: bool) -> Outcome:
    """Print what a command has returned, and return it; anything but an Outcome is a bug."""
    if not isinstance(result, Outcome):
        raise InternalError(PROGRAM, repr(result), "an Outcome", "return one from the command")
    if as_json:
        _print_document(result.record)
    else:
        # lines of text stay whole: a terminal breaks them, a file or a pipe need not
        Console().print(PrintableView(result.view), soft_wrap=isinstance(result.view, Text))
    return result


def print_failure(error: TilewrightError) -> None:
    """Print the document of a failure."""
    _print_document(describe_failure(error))


def _print_document(document: Document) -> None:
    print(canonical_json(document).decode(), flush=True)
