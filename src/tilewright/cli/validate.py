"""``tilewright validate``: every oracle, with what it expects and what our engines find."""

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilewright.benches.oracles.laws.finding import OracleGroup
from tilewright.benches.oracles.page import figure, validation_page
from tilewright.benches.validate import run_oracles
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.cli.output import note
from tilewright.cli.startup import engine_line
from tilewright.engine import AUTO, EngineKind, native_built, resolve_engine
from tilewright.errors import UsageError
from tilewright.records import OracleRow, ValidateRecord

__all__ = ("validate",)


def validate(
    group: Annotated[OracleGroup | None, typer.Option(help="Run one group only.")] = None,
    engine: Annotated[
        EngineKind | None, typer.Option(help="Choose the engine; the fastest there is if not.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page of the documentation, too."),
    ] = None,
    _json: JsonOption = False,
) -> Outcome:
    """Check the simulator against results that are known without it.

    Closed forms, data sheets, published tables and slow second models, each with the tolerance
    of its rule: `docs/validation.md` says where that comes from. Exit status 1 if one fails. The
    reference engine gives the same figures, and takes a hundred times as long for memories.
    """
    if markdown is not None and group is not None:
        fix = "leave out --group or --markdown"
        raise UsageError("validate", f"--markdown with --group {group.value}", "all groups", fix)
    built = native_built()
    kind = resolve_engine(AUTO if engine is None else engine, native_built=built)
    note(engine_line(kind.value, built))
    record = run_oracles(kind, group=group, progress=note)
    if markdown is not None:
        _write(markdown, validation_page(record))
    return Outcome(record, _view(record), passed=record.ok)


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        found = f"a page that cannot be written ({error.strerror})"
        raise UsageError(str(path), found, "a writable path", "choose another one") from error


def _view(record: ValidateRecord) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, padding=(0, 1))
    table.add_column("group", no_wrap=True)
    table.add_column("name (unit)")
    for heading in ("expected", "found", "error", "tolerance"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    last = ""
    for row in record.oracles:
        table.add_row("" if row.group == last else row.group, *_cells(row))
        last = row.group
    failed = [row.name for row in record.oracles if not row.ok]
    verdict = f"{len(record.oracles) - len(failed)} of {len(record.oracles)} oracles hold."
    if failed:
        verdict += "\nThese do not:\n" + "\n".join(f"  {name}" for name in failed)
    return Group(table, Text(verdict))


def _cells(row: OracleRow) -> tuple[str | Text, ...]:
    verdict = Text("holds") if row.ok else Text("FAILS", style="bold red")
    limits = [figure(value, digits=3) for value in (row.error, row.tolerance)]
    name = Text(f"{row.name} ({row.unit})")
    return (name, figure(row.expected), figure(row.found), *limits, verdict)
