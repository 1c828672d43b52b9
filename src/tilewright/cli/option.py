"""Arguments and options that several commands share, and what a shell offers for them."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from tilewright.cli.group import load


def _offer(place: str) -> Callable[[], list[tuple[str, str]]]:
    """Return what offers the names of a list; the module of the list is loaded when asked."""

    def complete() -> list[tuple[str, str]]:
        offered: list[tuple[str, str]] = load(place, "summaries")()
        return offered

    return complete


complete_flow = _offer("command.attention.show")
complete_machine = _offer("command.machine.show")
complete_program = _offer("command.list_")


def machine_option(text: str, *names: str) -> Any:
    """Return an option whose value is a machine."""
    return typer.Option(*names, metavar="FILE|PRESET", autocompletion=complete_machine, help=text)


FlowArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|NAME",
        autocompletion=complete_flow,
        help="A flow file, or the name of a ready flow.",
    ),
]
MachineArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|PRESET",
        autocompletion=complete_machine,
        help="A machine file, or the name of a preset.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change one value; may be repeated."),
]
NameOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which flow of a file with several.")
]
PageSizeOption = Annotated[int, typer.Option(min=1, help="Tokens of a page.")]
ThreadsOption = Annotated[
    int,
    typer.Option(min=1, help="Threads of matrix products; another number may round otherwise."),
]
