"""``tilewright machine list``, ``check`` and ``show``: what machines are, and what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Annotated, cast

import typer
from pydantic import JsonValue
from rich.text import Text

from tilewright.cli.command.machine.tree import FIRST_CUBE, machine_view
from tilewright.cli.option import MachineArgument, SetOption
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.errors import UsageError
from tilewright.machine.build import Machine, machine_hash
from tilewright.machine.check import check_machine_file, warnings_of
from tilewright.machine.file.explain import MachineFileError, unused_keys
from tilewright.machine.file.write import machine_file_text
from tilewright.machine.parse import (
    DEFAULT_PRESET,
    load_machine,
    load_machine_document,
    machine_of_document,
)
from tilewright.machine.presets import list_presets, preset_summary
from tilewright.machine.totals import totals_of
from tilewright.records import MachineFigures, MachineShowRecord
from tilewright.records.machine import MachineListRecord, MachineRow
from tilewright.report.format import rate_text
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.svg import write_svg
from tilewright.units import format_bytes


def summaries() -> list[tuple[str, str]]:
    """Return the names of machines that ship, each with what it is for."""
    return [(name, preset_summary(name)) for name in list_presets()]


def list_() -> Outcome:
    """List the machines that ship.

    A line for each: SIPs (packages), cubes (dies), PEs, capacity and rate of the HBM, and what it
    is for. tilewright machine show NAME tells all of it.
    """
    rows = [
        MachineRow(name=name, summary=summary, figures=_figures(load_machine(name)))
        for name, summary in summaries()
    ]
    width = max(len(row.name) for row in rows)
    view = Text(f"{'':<{width}}  SIPs  cubes   PEs       HBM    HBM rate\n", style="dim")
    for row in rows:
        figures = row.figures
        counts = f"{figures.num_sips:>6}{figures.num_cubes:>7}{figures.num_pes:>6}"
        hbm = f"{format_bytes(figures.hbm_bytes):>10}{rate_text(figures.hbm_bytes_per_us):>13}"
        view.append(f"{row.name:<{width}}", style="bold")
        view.append(f"{counts}{hbm}  {row.summary}\n")
    view.append("\nall of one: tilewright machine show NAME", style="dim")
    return Outcome(MachineListRecord(machines=tuple(rows)), view)


def check(
    machine: MachineArgument = DEFAULT_PRESET,
    set_: SetOption = None,
) -> Outcome:
    """Say what is wrong with a machine file, or doubtful.

    The file is read and the machine is built. Every mistake comes with file, line and path. Exit
    status 0: the machine can be built, with warnings or without; 2: it cannot. A file that names
    classes of yours (`impl`) imports them, unless --no-code refuses it.
    """
    with all_problems(machine):
        record = check_machine_file(machine, set_ or ())
    lines = [f"{record.machine}: a valid machine of {record.num_pes} PEs"]
    lines += [f"warning: {warning}" for warning in record.warnings] or ["no warnings"]
    return Outcome(record, Text("\n".join(lines)))  # a Text: brackets in a message are no markup


def show(
    machine: MachineArgument = DEFAULT_PRESET,
    set_: SetOption = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the machine into FILE, one SVG of four panels."),
    ] = None,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Print the machine as a machine file with every value.")
    ] = False,
    json: JsonOption = False,
) -> Outcome:
    """Show what a machine is: its parts, their figures, its totals.

    A machine is a host, a fabric, SIPs (packages) of cubes (dies), and PEs in
    each cube. What a file or preset leaves out has its default; --yaml tells
    every value, and is a good start for a file of your own:

    \b
      tilewright machine show ahbm --yaml > mine.yaml
      tilewright machine show mine.yaml --svg mine.svg
      tilewright machine show ahbm --set cube.noc.bytes_per_us="512 GB/s"

    A bisection is what crosses the middle of a network, one way.
    """
    if yaml and json:
        fix = "leave one out; the JSON document has every value too"
        raise UsageError("command line", "--yaml and --json", "one form of output", fix)
    start = perf_counter()
    with all_problems(machine):
        document = load_machine_document(machine, set_ or ())
        built = machine_of_document(document)  # the proof against deadlock is part of building
    seconds = perf_counter() - start
    if svg is not None:
        write_svg(svg, draw_machine(built))
    if yaml:
        print(machine_file_text(built.spec), end="")  # as it is: a view would be wrapped
        raise typer.Exit
    record = MachineShowRecord(
        source=machine,
        overrides=tuple(set_ or ()),
        machine=built.spec.name,
        machine_hash=machine_hash(built.spec),
        spec=cast(dict[str, JsonValue], built.spec.model_dump(mode="json")),
        figures=_figures(built),
        num_nodes=len(built.nodes),
        num_links=len(built.links),
        attachments={
            node: router
            for node, router in built.attachments().items()
            if router.startswith(FIRST_CUBE)
        },
        warnings=(*unused_keys(document, built.spec), *warnings_of(built)),
        build_seconds=seconds,
        picture=None if svg is None else str(svg),
    )
    return Outcome(record, machine_view(built.spec, record))


@contextmanager
def all_problems(source: str) -> Iterator[None]:
    """List all mistakes of a file in one error; a single one stays as it is."""
    try:
        yield
    except MachineFileError as error:
        problems = error.problems
        if len(problems) < 2:
            raise
        found = "\n".join([f"{len(problems)} mistakes:", *map(str, problems)])
        fix = "correct them, and check again"
        raise MachineFileError(source, found, "none", fix, problems) from error


def _figures(machine: Machine) -> MachineFigures:
    return MachineFigures.of(totals_of(machine))
