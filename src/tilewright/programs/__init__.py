"""Programs of `run`: the table of those that are built in."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from tilewright.programs import builtin
from tilewright.programs.contract import BenchProgram, build_programs

__all__ = ("PROGRAMS",)

ORDER = (
    "gemm",
    "row",
    "flash_attention",
    "decode_attention",
    "quest_decode",
    "ring_attention",
    "decode_merge",
    "stream",
    "pointer_chase",
    "va_offset_verify",
    "collective",
    "tile_sum",
)
"""Modules of ``builtin`` in the order of ``tilewright list``; others follow by name."""


def _find_programs() -> Iterator[BenchProgram]:
    """Yield the programs of every module of ``builtin``."""
    names = {module.name for module in iter_modules(builtin.__path__)}
    for name in (*ORDER, *sorted(names.difference(ORDER))):
        yield from import_module(f"{builtin.__name__}.{name}").PROGRAMS


PROGRAMS = build_programs(_find_programs())
