"""``tilewright validate``: every oracle, with what it expects and what our engines find."""

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from tilewright.cli.outcome import Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import EngineOption, announced_engine
from tilewright.errors import UsageError
from tilewright.records import OracleRow, ValidateRecord, check_target, write_file
from tilewright.validation.finding import OracleGroup
from tilewright.validation.page import figure, validation_page
from tilewright.validation.run import run_oracles


def validate(
    group: Annotated[OracleGroup | None, typer.Option(help="Run one group only.")] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Run the slow ones too; they take about ten minutes."),
    ] = False,
    engine: EngineOption = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page of the documentation, too."),
    ] = None,
) -> Outcome:
    """Check the simulator against results that are known without it.

    Closed forms, data sheets, published tables and slow second models, each with the tolerance
    of its rule: `docs/validation.md` says where that comes from. Exit status 1 if one fails. The
    reference engine gives the same figures, and takes a hundred times as long for memories.
    """
    if markdown is not None and group is not None:
        fix = "leave out --group or --markdown"
        raise UsageError("validate", f"--markdown with --group {group.value}", "all groups", fix)
    if markdown is not None and all_:
        found, fix = "--markdown with --all", "leave out one of them"
        raise UsageError("validate", found, "the oracles of a run without options", fix)
    if markdown is not None:
        check_target(markdown, "page")
    record = run_oracles(announced_engine(engine), group=group, with_slow=all_, progress=note)
    if markdown is not None:
        write_file(markdown, validation_page(record).encode(), "page")
    return Outcome(record, _view(record), passed=record.ok)


HEADER = f"{'expected':>10}{'found':>11}{'error':>11}{'tolerance':>11}  oracle (unit)"
MEANING = "error: how far found is from expected; an oracle holds up to its tolerance."


def _view(record: ValidateRecord) -> RenderableType:
    """A line for each oracle, its name last, so that a narrow terminal breaks names alone."""
    view = Text()
    for group, rows in groupby(record.oracles, key=lambda row: row.group):
        view.append(f"{group}\n", style="bold")
        view.append(f"{HEADER}\n", style="dim")
        for row in rows:
            _add_row(view, row)
        view.append("\n")
    failed = [row.name for row in record.oracles if not row.ok]
    view.append(
        f"{MEANING}\n{len(record.oracles) - len(failed)} of {len(record.oracles)} oracles hold."
    )
    for reason in record.skipped:
        view.append(f"\nNot run: {reason}.")
    if failed:
        view.append("\nThese do not:\n" + "\n".join(f"  {name}" for name in failed))
    return view


def _add_row(view: Text, row: OracleRow) -> None:
    limits = [figure(value, digits=3) for value in (row.error, row.tolerance)]
    expected, *others = (figure(row.expected), figure(row.found), *limits)
    view.append(f"{expected:>10}" + "".join(f"{cell:>11}" for cell in others) + "  ")
    if not row.ok:
        view.append("FAILS ", style="bold red")
    view.append(f"{row.name} ({row.unit})\n")
