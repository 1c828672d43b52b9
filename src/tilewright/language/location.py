"""Where an error of a kernel happened: the author's line, the program, the simulated time."""

from contextlib import AbstractContextManager
from traceback import walk_tb
from types import FrameType
from typing import Any

from tilewright.engine.fault import CoreFault
from tilewright.errors import PageFaultError, TilewrightError
from tilewright.language.program import Program
from tilewright.language.source import add_place, is_ours, line_text

__all__ = ("explained",)


def explained(program: Program) -> AbstractContextManager[None]:
    """Errors inside say where the kernel's author finds the reason.

    An error of the author's own gets a note; what the core refuses reads as if the end of a piece
    had found it, whichever engine runs.
    """
    return _Explained(program)


class _Explained:
    """A class, since each program enters one: a generator takes three times as long."""

    __slots__ = ("_program",)

    def __init__(self, program: Program) -> None:
        self._program = program

    def __enter__(self) -> None:
        """Nothing has happened yet."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        program = self._program
        match error:
            case None:
                return
            case PageFaultError():
                place = _place(error, program)
                raise error.located(kernel=program.name, line=place) from None
            case TilewrightError():
                _locate(error, program)
            case CoreFault():
                refused = program.run.device.engine.error_of_run(error)
                refused = refused.with_traceback(error.__traceback__)
                _locate(refused, program)
                raise refused from None
            case Exception():
                error.add_note(f"in {program}, at {program.run.hub.now_ps} ps")


def _locate(error: BaseException, program: Program) -> None:
    if isinstance(error, TilewrightError) and str(program) not in error.where:
        add_place(error, _place(error, program))


def _place(error: BaseException, program: Program) -> str:
    return f"{_line_of(error)}, {program}, at {program.run.hub.now_ps} ps"


def _line_of(error: BaseException) -> str:
    """The last line outside of the language that called into it."""
    found: FrameType | None = None
    number = 0
    caller: tuple[FrameType, int] | None = None
    for frame, line in walk_tb(error.__traceback__):
        if caller is not None and is_ours(frame.f_code):
            found, number = caller
        caller = None if is_ours(frame.f_code) else (frame, line)
    if found is None:
        return line_text(None)
    return f"{found.f_code.co_filename}:{number} in {found.f_code.co_name}"
