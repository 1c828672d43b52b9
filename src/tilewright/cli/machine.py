"""``tilewright machine``: what a machine is, and whether a file describes one."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from tilewright.cli.arguments import MachineArgument, SetOption
from tilewright.cli.machine_problems import all_problems
from tilewright.cli.machine_show import machine_view, show_machine
from tilewright.cli.outcome import JsonOption, Outcome
from tilewright.errors import UsageError
from tilewright.machine.check import check_machine_file
from tilewright.machine.file.explain import MachineFileError
from tilewright.machine.file.write import machine_file_text
from tilewright.machine.parse import DEFAULT_PRESET
from tilewright.records import MachineCheckRecord
from tilewright.report.machine_svg.picture import draw_machine
from tilewright.report.svg import write_svg


def check(
    machine: MachineArgument = DEFAULT_PRESET,
    set_: SetOption = None,
    _json: JsonOption = False,
) -> Outcome:
    """Say what is wrong with a machine file, or doubtful.

    The file is read and the machine is built. Every mistake comes with file, line and path. Exit
    status 0: the machine can be built, with warnings or without; 2: it cannot. A file that names
    classes of yours (`impl`) imports them, unless --no-code refuses it.
    """
    try:
        record = check_machine_file(machine, set_ or ())
    except MachineFileError as error:
        raise all_problems(machine, error) from error
    return Outcome(record, _view(record))


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
    try:
        shown = show_machine(machine, set_ or ())
    except MachineFileError as error:
        raise all_problems(machine, error) from error
    if svg is not None:
        write_svg(svg, draw_machine(shown.machine))
    if yaml:
        print(machine_file_text(shown.machine.spec), end="")  # as it is: a view would be wrapped
        raise typer.Exit
    record = shown.record(machine, set_ or (), None if svg is None else str(svg))
    return Outcome(record, machine_view(shown.machine.spec, record))


def _view(record: MachineCheckRecord) -> RenderableType:
    lines = [f"{record.machine}: a valid machine of {record.num_pes} PEs"]
    lines += [f"warning: {warning}" for warning in record.warnings] or ["no warnings"]
    return Text("\n".join(lines))  # a Text, since brackets in a message are no markup
