"""The commands of ``tilewright``, put together."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tilewright.cli import attention, bench, machine
from tilewright.cli.compare import compare
from tilewright.cli.demo import demo
from tilewright.cli.explain import explain
from tilewright.cli.generate import generate
from tilewright.cli.list_ import list_
from tilewright.cli.probe import HELP as PROBE_HELP
from tilewright.cli.probe import probe
from tilewright.cli.run import HELP as RUN_HELP
from tilewright.cli.run import run as run_command
from tilewright.cli.shell import run_app
from tilewright.cli.validate import validate
from tilewright.records import installed_version

__all__ = ("app", "run")

HELP = """Simulate LLM kernels on accelerators that do not exist yet: values and time in one run.

Every command takes --json and then prints one JSON document on standard output and nothing else.

Exit status: 0 what the command claims holds, 1 a check failed, 2 wrong input, 130 interrupted.
"""

app = typer.Typer(help=HELP, add_completion=False, no_args_is_help=True, rich_markup_mode=None)
app.command()(demo)
app.command(help=PROBE_HELP)(probe)
app.command()(validate)
app.command("run", help=RUN_HELP)(run_command)
app.command("list")(list_)
app.command()(explain)
app.command()(compare)
app.command()(generate)
app.add_typer(machine.app, name="machine")
app.add_typer(attention.app, name="attention")
app.add_typer(bench.app, name="bench")


def run(arguments: Sequence[str]) -> int:
    return run_app(app, arguments)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {installed_version()}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Hold the options of the program itself; the commands are added from their own files."""
