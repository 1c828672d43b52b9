"""Where in the user's own code something was said."""

import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from tilewright.errors import TilewrightError

_PACKAGES = ("language", "executor", "interop/kernbench/language")
ROOMS = tuple(str(Path(__file__).parents[1] / package) for package in _PACKAGES)
"""Directories of code that a kernel calls. Errors, traces and profiles show the kernel's line."""

SourceLine = tuple[CodeType, int]
"""A function of the user's and an instruction in it; cheap to note, ``line_text`` reads it."""


def is_ours(code: CodeType) -> bool:
    """Whether the language itself says it, or what runs programs, rather than a kernel."""
    return code.co_filename.startswith(ROOMS)


def source_line() -> SourceLine:
    """The innermost place that is not ours; called by whatever a kernel calls."""
    frame: FrameType = sys._getframe(2)
    while frame.f_code.co_filename.startswith(ROOMS) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def line_text(line: SourceLine | None) -> str:
    """File, line and function."""
    if line is None:
        return "a kernel"
    code, instruction = line
    return f"{code.co_filename}:{_line_number(code, instruction)} in {code.co_name}"


@lru_cache(4096)
def _line_number(code: CodeType, instruction: int) -> int:
    """The lines of a long kernel are walked through once, not at each of its waits."""
    number = code.co_firstlineno
    for start, end, found in code.co_lines():
        if start <= instruction < end and found is not None:
            number = found
    return number


def add_place(error: TilewrightError, place: str) -> None:
    """Say where in front of what the error says itself; traceback and notes stay."""
    _set_where(error, f"{place}, {error.where}")


def add_time(error: TilewrightError, at_ps: int) -> None:
    """Say when, behind where."""
    _set_where(error, f"{error.where}, at {at_ps} ps")


def _set_where(error: TilewrightError, where: str) -> None:
    error.where = where
    error.args = (where, *error.args[1:])
