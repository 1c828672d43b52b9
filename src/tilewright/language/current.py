"""Which program is running: the one whose greenlet this is."""

from typing import Any

from greenlet import getcurrent

from tilewright.errors import KernelError
from tilewright.language.program import Program

__all__ = ("current_program", "enter_program")


def enter_program(program: Program) -> None:
    """From now on calls of this greenlet are the program's."""
    greenlet: Any = getcurrent()
    greenlet.tilewright_program = program


def current_program() -> Program:
    """For the functions of the language."""
    try:
        greenlet: Any = getcurrent()
        program: Program = greenlet.tilewright_program
    except AttributeError:
        fix = "launch the kernel; its calls have no meaning outside of a program"
        raise KernelError("tl", "a call outside of a kernel", "a running program", fix) from None
    return program
