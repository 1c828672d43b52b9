"""A group of commands that loads the one that a command line names, and no other."""

from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tilewright.cli.commands import Command, Group, load


class LazyGroup(TyperGroup):
    """Commands that are names with summaries until one of them is resolved."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._table: Mapping[str, Command | Group] = {}

    def fill(self, table: Mapping[str, Command | Group]) -> "LazyGroup":
        """Take the commands of a table, and return the group."""
        self._table = table
        self.commands.update({name: _named(name, entry) for name, entry in table.items()})
        return self

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        entry = self._table.get(args[0])
        if isinstance(entry, Command):
            self.commands[args[0]] = _loaded(args[0], entry)
        return super().resolve_command(ctx, args)


def _named(name: str, entry: Command | Group) -> TyperCommand | LazyGroup:
    """A group, or what lists say of a command."""
    if isinstance(entry, Group):
        group = LazyGroup(name=name, help=entry.summary, rich_markup_mode=None)
        return group.fill(entry.commands)
    return TyperCommand(name, help=entry.summary, rich_markup_mode=None)


def _loaded(name: str, entry: Command) -> Any:
    """The command itself; the text HELP of its module, if there is one, is its help."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    help_text = load(entry.module, "HELP")
    app.command(name, help=help_text)(load(entry.module, entry.function))
    return typer.main.get_command(app)
