"""The command ``tilewright``: its help and its own options, above its commands."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Annotated, cast

import typer

import tilewright
from tilewright.cli.group import LazyGroup
from tilewright.cli.shell import named_command, run_command
from tilewright.errors import UsageError
from tilewright.trust import refused_code

HELP = """Simulate LLM kernels on accelerators that do not exist yet: values and time in one run.

Start with:

\b
  tilewright demo                which attention should decode on a machine?
  tilewright run qkv_gemm        a program: its values, its time, and why
  tilewright machine show ahbm   the machine that it runs on

Every command takes --json and then prints one JSON document on standard output and nothing else.
Every command takes --no-code and then runs no code that a file brings or names, so that a machine
file or a record of a stranger can be looked at; so does the variable TILEWRIGHT_NO_CODE=1.

Exit status: 0 what the command claims holds, 1 a check failed, 2 wrong input, 130 interrupted.
"""

VERSION, NO_CODE = "--version", "--no-code"


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; ``--no-code`` may stand anywhere in it."""
    rest = [word for word in arguments if word != NO_CODE]
    with refused_code() if len(rest) < len(arguments) else nullcontext():
        command = build_command()
        with suppress(UsageError):  # reported below
            named_command(command, rest)  # whose libraries load here: main.py says what Ctrl-C does
        return run_command(command, rest)


def build_command() -> LazyGroup:
    """Return the command with all others, none of which is loaded."""
    app = typer.Typer(
        cls=LazyGroup,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},  # holds for all commands
    )
    app.callback()(_root)
    return cast(LazyGroup, typer.main.get_command(app)).fill()


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {tilewright.__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool,
        typer.Option(VERSION, callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    _no_code: Annotated[
        bool, typer.Option(NO_CODE, help="Run no code that files bring or name.")
    ] = False,
) -> None:
    """Hold the options of the program itself; the commands are added from their files."""
