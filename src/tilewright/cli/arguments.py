"""Arguments and options that several commands share."""

from typing import Annotated

import typer

from tilewright.cli.completion import complete_flow, complete_machine

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
