"""Argument parsing and printing only (Typer, Rich)."""

__all__: tuple[str, ...] = ()
