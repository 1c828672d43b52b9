"""What the language asks of whoever carries out a kernel: all that it knows of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from greenlet import getcurrent

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType


class Handle(Protocol):
    """Something that was begun; ``wait`` suspends the program until it has ended."""

    def wait(self) -> Any: ...


class Executor(Protocol):
    """Whoever carries out a kernel: a program on its PE, or one that computes on arrays at once.

    Blocks, indices, masks and pointers are values of ``language.value``; their types are open here
    because values know their executor.
    """

    # -- what becomes of values --------------------------------------------------------------------

    def binary(self, op: str, left: Any, right: Any) -> Any: ...
    def unary(self, op: str, value: Any) -> Any: ...
    def subscript(self, value: Any, key: Any) -> Any: ...
    def expand(self, value: Any, axis: int) -> Any: ...
    def spread(self, value: Any, shape: tuple[int, ...]) -> Any: ...
    def reshaped(self, value: Any, shape: tuple[int, ...]) -> Any: ...
    def convert(self, value: Any, dtype: Any, bitcast: bool) -> Any: ...
    def method(self, name: str, value: Any, args: tuple[Any, ...], kwargs: Any) -> Any: ...
    def array_function(self, function: Callable[..., Any]) -> Callable[..., Any]: ...
    def compute(self, op: str, operands: tuple[Any, ...], attributes: tuple[Any, ...] = ()) -> Any:
        """Carry out an op of the table of meanings on blocks."""

    def placed(self, block: Any) -> Any:
        """Return a block with its bytes in their order; those of a transposed one may not be."""

    def release(self, number: int) -> None:
        """Let go of a value's space: the kernel holds it no more."""

    # -- what Python gets to see of them -----------------------------------------------------------

    def number(self, value: Any) -> Any: ...
    def printable(self, value: Any) -> Any: ...
    def elements(self, value: Any) -> np.ndarray[Any, Any]: ...

    # -- numbers, shapes and places as operands ----------------------------------------------------

    ids: tuple[int, ...]

    def place(self, axis: Any) -> tuple[int, int]:
        """Return the place on an axis of the grid or of the machine, and how many there are."""

    def dtype(self, source: Any) -> DType: ...
    def extents(self, shape: Any) -> tuple[int, ...]: ...
    def block(self, value: Any, beside: Any = None, op: str = "add") -> Any: ...
    def constant(self, value: Any, dtype: DType) -> Any: ...
    def index_range(self, start: int, end: int) -> Any: ...
    def pointers(self, address: int, element: DType) -> Any: ...
    def untagged(self, pointers: Any) -> Any:
        """Return bare addresses, where somebody tags them to see what they are used for."""

    # -- memory, composites and messages -----------------------------------------------------------

    def load(self, pointers: Any, mask: Any, other: Any) -> Any: ...
    def store(self, pointers: Any, value: Any, mask: Any) -> None: ...
    def atomic(
        self, op: str, pointer: Any, values: tuple[Any, ...], mask: Any, sem: str | None
    ) -> Any: ...
    def atomic_load(self, pointer: Any, mask: Any, sem: str | None) -> Any: ...
    def atomic_store(self, pointer: Any, value: Any, mask: Any, sem: str | None) -> None: ...
    def note_poll(self, pointer: object) -> None:
        """Note that the next access may be one of many in vain."""

    def composite(self, composite: Any) -> Handle:
        """Begin what a ``CompositePlan`` says."""

    def send(self, direction: Any, block: Any) -> None: ...
    def receive(self, direction: Any, kind: BlockType) -> Handle: ...
    def peek(self, direction: Any, kind: BlockType) -> Any:
        """Return the next message of a direction and leave it where it is."""

    # -- words -------------------------------------------------------------------------------------

    def error(self, found: str, expected: str, fix: str) -> KernelError: ...


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


def carry_out(op: str, operands: Iterable[Any], *attributes: Any) -> Any:
    """Compute an op of the running program; an operand is a block, or what can become one."""
    program = current_program()
    return program.compute(op, tuple(map(program.block, operands)), attributes)
