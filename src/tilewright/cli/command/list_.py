"""``tilewright list``: the ready programs and their parameters."""

from typing import Annotated

import typer
from rich.text import Text

from tilewright.cli.option import complete_program
from tilewright.cli.outcome import Outcome
from tilewright.programs import PROGRAMS
from tilewright.programs.contract import BenchProgram
from tilewright.records.explain import ListRecord, ProgramParameter, ProgramRow
from tilewright.studies.run.source import find_program


def summaries() -> list[tuple[str, str]]:
    """Return the names of ready programs, each with what it does."""
    return [(program.name, program.summary) for program in PROGRAMS.values()]


def list_(
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCH",
            autocompletion=complete_program,
            help="Only this one, with its parameters.",
        ),
    ] = None,
) -> Outcome:
    """List the ready programs, or the parameters of one."""
    chosen = PROGRAMS.values() if program is None else (find_program(program),)
    record = ListRecord(programs=tuple(map(_row, chosen)))
    return Outcome(record, _one(record) if program else _all(record))


def _row(program: BenchProgram) -> ProgramRow:
    return ProgramRow.of(
        program,
        parameters=tuple(
            ProgramParameter.of(each, type=each.kind.__name__) for each in program.parameters
        ),
    )


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
