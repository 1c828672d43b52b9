"""Where in the user's own code something was said."""

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from os.path import relpath
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from tilewright.errors import TilewrightError

ROOM = str(Path(__file__).parent)
ROOMS = (ROOM, str(Path(__file__).parents[1] / "executor"))

SourceLine = tuple[CodeType, int]
"""A function of the user's and an instruction in it; cheap to note, ``line_text`` reads it."""


def is_ours(code: CodeType) -> bool:
    """Whether the language itself says it, or what runs programs, rather than a kernel."""
    return code.co_filename.startswith(ROOMS)


def count_as_language(module: Mapping[str, Any]) -> None:
    """Let a module elsewhere count as the language's own code; called at its end with globals().

    Errors, traces and profiles then show the kernel's line that calls its functions. Only the
    spelling of their file's path changes: it leads through the language's directory.
    """
    for function in _functions_of(module):
        function.__code__ = _led_through(function.__code__)


def _functions_of(module: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Functions that a module defines, those of its classes included."""
    own = [value for value in module.values() if _is_of(value, module["__name__"])]
    for value in own:
        members = vars(value).values() if isinstance(value, type) else (value,)
        for member in members:
            inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(inner, FunctionType) and not is_ours(inner.__code__):
                yield inner


def _is_of(value: object, module_name: str) -> bool:
    return getattr(value, "__module__", None) == module_name


def _led_through(code: CodeType) -> CodeType:
    constants = tuple(
        _led_through(value) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    file = f"{ROOM}/{relpath(code.co_filename, ROOM)}"
    return code.replace(co_filename=file, co_consts=constants)


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
