"""Loops, hints, checks and prints."""

import builtins
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.executor import Executor, current_program
from tilewright.language.value import Value


def range(
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: int | None = None,
    loop_unroll_factor: int | None = None,
    disallow_acc_multi_buffer: bool = False,
    flatten: bool = False,
    warp_specialize: bool = False,
    disable_licm: bool = False,
) -> Iterator[int]:
    """Python's range; how a compiler would pipeline the loop says nothing here."""
    if arg2 is None:
        return iter(builtins.range(int(arg1)))
    return iter(builtins.range(int(arg1), int(arg2), 1 if step is None else int(step)))


def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> Iterator[int]:
    """As ``range``."""
    return range(arg1, arg2, step)


def multiple_of(input: Any, values: Any) -> Any:
    """A hint for a compiler: the input itself."""
    return input


def max_contiguous(input: Any, values: Any) -> Any:
    """A hint for a compiler: the input itself."""
    return input


def max_constancy(input: Any, values: Any) -> Any:
    """A hint for a compiler: the input itself."""
    return input


def assume(cond: Any) -> None:
    """A hint for a compiler: nothing."""


def debug_barrier() -> None:
    """Threads of one program need not wait for each other: there is only one."""


def static_assert(cond: Any, msg: str = "") -> None:
    """Ends the run if a constant is false."""
    if not cond:
        found = f"static_assert failed: {msg}"
        raise current_program().error(found, "a true condition", "correct the kernel")


def device_assert(cond: Any, msg: str = "", mask: Any = None) -> None:
    """Ends the run if an element is false; the program waits for it."""
    program = current_program()
    if isinstance(cond, Value):
        holds = program.elements(cond)
        if mask is not None:
            holds = holds | ~program.elements(program.block(mask))
        is_true = bool(holds.all())
    else:
        is_true = bool(cond)
    if not is_true:
        found = f"device_assert failed: {msg}"
        raise program.error(found, "a true condition", "correct the kernel")


def static_print(
    *values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False
) -> None:
    """Python's print, with the types of blocks."""
    shown = [repr(value) if isinstance(value, Value) else str(value) for value in values]
    (file or sys.stdout).write(sep.join(shown) + end)


def device_print(prefix: str, *args: Any, hex: bool = False) -> None:
    """The program and the values; it waits for them.

    Where only time is asked for, floats show their type.
    """
    program = current_program()
    shown = [_shown(program, value, hex) for value in args]
    sys.stdout.write(f"pid {program.ids} {prefix}{' '.join(shown)}\n")


def _shown(program: Executor, value: Any, in_hex: bool) -> str:
    found = program.printable(value) if isinstance(value, Value) else np.asarray(value)
    if in_hex and isinstance(found, np.ndarray) and found.dtype.kind in "iu":
        return np.array2string(found, formatter={"int": builtins.hex})
    return str(found)


def inline_asm_elementwise(*args: Any, **kwargs: Any) -> None:
    """There is no assembler for a machine that does not exist."""
    fix = "write it with functions of the language"
    raise KernelError("tl.inline_asm_elementwise", "assembler", "functions of tl", fix)
