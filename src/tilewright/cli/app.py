"""The commands of ``tilewright``, put together; only what a command line names is loaded."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from types import MappingProxyType
from typing import Annotated

import typer

from tilewright.cli.shell import run_app
from tilewright.records import installed_version
from tilewright.trust import refused_code

__all__ = ("COMMANDS", "build_app", "run")

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
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "demo": ("demo", "demo"),
        "probe": ("probe", "probe"),
        "validate": ("validate", "validate"),
        "run": ("run", "run"),
        "list": ("list_", "list_"),
        "explain": ("explain", "explain"),
        "compare": ("compare", "compare"),
        "generate": ("generate", "generate"),
        "machine": ("machine", "app"),
        "attention": ("attention", "app"),
        "bench": ("bench", "app"),
    }
)
"""By name: a module of this package, and its function, or its app of further commands.

A module's ``HELP``, if it has one, is the help of its function; else that is the docstring.
"""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; ``--no-code`` may stand anywhere in it."""
    rest = [word for word in arguments if word != NO_CODE]
    with refused_code() if len(rest) < len(arguments) else nullcontext():
        return run_app(build_app(rest), rest)


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """With the command that the first argument names, or with all, as for a list of them.

    Libraries of all commands take twice as long to load as those of most; a version needs none.
    """
    app = typer.Typer(help=HELP, add_completion=False, no_args_is_help=True, rich_markup_mode=None)
    app.callback()(_root)
    named = arguments[0] if arguments else ""
    if named == VERSION:
        return app
    for command in (named,) if named in COMMANDS else COMMANDS:
        _add(app, command)
    return app


def _add(app: typer.Typer, name: str) -> None:
    file, attribute = COMMANDS[name]
    module = import_module(f"tilewright.cli.{file}")
    command = getattr(module, attribute)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, help=getattr(module, "HELP", None))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {installed_version()}")
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
    """Hold the options of the program itself; the commands are added from their own files."""
