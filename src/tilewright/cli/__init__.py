"""Argument parsing and printing only (Typer, Rich)."""
