"""``tilewright list``: the ready programs and their parameters."""

from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.completion import complete_program
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.records.explain import ListRecord
from tilewright.studies.list_ import list_programs


def summaries() -> list[tuple[str, str]]:
    """Return the names of ready programs, each with what it does."""
    return [(row.name, row.summary) for row in list_programs().programs]


def list_(
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCH",
            autocompletion=complete_program,
            help="Only this one, with its parameters.",
        ),
    ] = None,
    _json: JsonOption = False,
) -> Outcome:
    """List the ready programs, or the parameters of one."""
    record = list_programs(program)
    return Outcome(record, _one(record) if program else _all(record))


def _all(record: ListRecord) -> Text:
    view = Text()
    width = max(len(row.name) for row in record.programs)
    for row in record.programs:
        view.append(f"{row.name:<{width}}", style="bold")
        view.append(f"  {row.summary}\n")
    view.append("\nrun one: tilewright run NAME; its parameters: tilewright list NAME", style="dim")
    return view


def _one(record: ListRecord) -> Text:
    (row,) = record.programs
    view = Text()
    view.append(row.name, style="bold")
    view.append(f"  {row.summary}\n\nparameters, by --param name=value:\n")
    width = max((len(each.name) for each in row.parameters), default=0)
    for each in row.parameters:
        values = f" ({', '.join(map(str, each.choices))})" if each.choices else ""
        view.append(f"  {each.name:<{width}}", style="bold")
        view.append(f"  {each.type}, {each.default} unless set{values}")
        view.append(f": {each.help}\n" if each.help else "\n")
    if not row.parameters:
        view.append("  none\n")
    view.append(f"\nmachine, unless --machine says another: {row.machine}")
    return view
