"""Which program is running: the one whose greenlet this is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from greenlet import getcurrent

from tilewright.errors import KernelError
from tilewright.language.executor import Executor


def enter_program(program: Executor) -> None:
    """From now on calls of this greenlet are the program's."""
    greenlet: Any = getcurrent()
    greenlet.tilewright_program = program


@contextmanager
def entered(program: Executor) -> Iterator[None]:
    """For a while calls of this greenlet are another program's."""
    greenlet: Any = getcurrent()
    before = getattr(greenlet, "tilewright_program", None)
    greenlet.tilewright_program = program
    try:
        yield
    finally:
        if before is None:
            del greenlet.tilewright_program
        else:
            greenlet.tilewright_program = before


def program_here() -> Executor | None:
    """Return the program whose greenlet calls; None outside of kernels."""
    return getattr(getcurrent(), "tilewright_program", None)


def current_program() -> Executor:
    """For the functions of the language."""
    try:
        greenlet: Any = getcurrent()
        program: Executor = greenlet.tilewright_program
    except AttributeError:
        fix = "launch the kernel; its calls have no meaning outside of a program"
        raise KernelError("tl", "a call outside of a kernel", "a running program", fix) from None
    return program
