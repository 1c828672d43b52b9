"""``tilewright machine``: what a machine is, and whether a file describes one."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.errors import SpecError
from tilewright.machine.explain import MachineFileError
from tilewright.machine.file_check import check_machine_file
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.records import MachineCheckRecord

__all__ = ("MachineArgument", "SetOption", "app")

MachineArgument = Annotated[
    str, typer.Argument(metavar="[FILE|PRESET]", help="A machine file, or the name of a preset.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change one value; may be repeated."),
]

app = typer.Typer(help="Look at machines: what they are, and what is wrong with a file.")


@app.callback()
def _root() -> None:
    """Keep ``check`` a command of its own, also while it is the only one."""


@app.command()
def check(
    machine: MachineArgument = DEFAULT_PRESET,
    set_: SetOption = None,
    _json: JsonOption = False,
) -> Outcome:
    """Read a machine file, build the machine, and say what is wrong or doubtful.

    Every mistake comes with file, line and path. Exit status 0: the machine can be built, with
    warnings or without; 2: it cannot. A file that names classes of yours (`impl`) imports them.
    """
    try:
        record = check_machine_file(machine, set_ or ())
    except MachineFileError as error:
        raise _all_problems(machine, error) from error
    return Outcome(record, _view(record))


def _view(record: MachineCheckRecord) -> RenderableType:
    lines = [f"{record.machine}: a valid machine of {record.num_pes} PEs"]
    lines += [f"warning: {warning}" for warning in record.warnings] or ["no warnings"]
    return Text("\n".join(lines))  # a Text, since brackets in a message are no markup


def _all_problems(machine: str, error: MachineFileError) -> SpecError:
    if len(error.problems) < 2:
        return error
    found = "\n".join([f"{len(error.problems)} mistakes:", *map(str, error.problems)])
    return SpecError(machine, found, "none", "correct them, and check again")
