"""Groups of commands: a command line loads the one that it names, and no other.

A command is a public function that returns an ``Outcome``, in a module of ``cli/command``; a folder
there is a group. Lists of commands are made from the text of these files.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tilewright.errors import UsageError

HERE = Path(__file__).parent
COMMANDS = HERE / "command"
RESULT = "Outcome"  # what a command returns, by its name


@dataclass(frozen=True, slots=True)
class Entry:
    """What a list says of a command or a group, and where that is."""

    summary: str
    place: str  # dotted, below this package
    function: str = ""  # none: a group


class LazyGroup(TyperGroup):
    """Commands that are names with summaries until one of them is resolved."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries: dict[str, Entry] = {}

    def fill(self, folder: Path = COMMANDS) -> "LazyGroup":
        """Take the commands of a folder, and return the group."""
        self._entries = list_commands(folder)
        for name, entry in self._entries.items():
            if entry.function:
                command = TyperCommand(name, help=entry.summary, rich_markup_mode=None)
                self.commands[name] = command
            else:
                group = LazyGroup(name=name, help=entry.summary, rich_markup_mode=None)
                self.commands[name] = group.fill(folder / name)
        return self

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        entry = self._entries.get(args[0])
        if entry is not None and entry.function:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(args[0])(_with_options(load(entry.place, entry.function)))
            self.commands[args[0]] = typer.main.get_command(app)
        return super().resolve_command(ctx, args)


def list_commands(folder: Path = COMMANDS) -> dict[str, Entry]:
    """Return commands and groups by name: those in the folder's ORDER first, then others."""
    found: dict[str, Entry] = {}
    for path in sorted(folder.iterdir()):
        place = ".".join(path.relative_to(HERE).with_suffix("").parts)
        if (path / "__init__.py").exists():
            found[path.name] = Entry(_first_line(_parsed(path / "__init__.py")), place)
        elif path.suffix == ".py":
            found |= _functions(path, place)
    (order,) = (
        ast.literal_eval(node.value)
        for node in _parsed(folder / "__init__.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER"
    )
    return {name: found[name] for name in (*order, *(name for name in found if name not in order))}


def load(place: str, name: str) -> Any:
    """Return what a module of this package has under a name; the module is loaded now."""
    try:
        loaded = import_module(f"tilewright.cli.{place}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tilewright.bench"):
            raise
        found, expected = "an installed wheel, which has no benchmarks", "a checkout of the project"
        fix = "clone it, run `make bench-env` there, then .venv/bin/tilewright bench"
        raise UsageError("tilewright bench", found, expected, fix) from error
    return getattr(loaded, name)


def _functions(file: Path, place: str) -> dict[str, Entry]:
    """Return the commands of a module; ``list_`` is the command ``list``."""
    return {
        node.name.rstrip("_"): Entry(_first_line(node), place, node.name)
        for node in _parsed(file).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if node.returns is not None and ast.unparse(node.returns) == RESULT
    }


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with a parameter for each of its options, ``--json`` among them.

    A command takes its options one by one, or as one dataclass that has them as fields.
    """
    taken = list(signature(function).parameters.values())
    options: Any = next((each.annotation for each in taken if is_dataclass(each.annotation)), None)
    shown = taken if options is None else list(signature(options).parameters.values())

    def command(**values: Any) -> Any:
        values.pop("_json", None)  # which the shell acts on
        return function(**values) if options is None else function(options(**values))

    if all(each.name != "json" for each in shown):
        json = load("outcome", "JsonOption")
        shown.append(Parameter("_json", Parameter.KEYWORD_ONLY, default=False, annotation=json))
    command.__doc__ = function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in shown}
    command.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return command
