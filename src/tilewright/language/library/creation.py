"""What a program begins with: its place in the grid, blocks of numbers, random draws."""

from collections.abc import Callable
from typing import Any

from tilewright.language.dtype import float32
from tilewright.language.executor import carry_out, current_program
from tilewright.language.front import direct
from tilewright.language.scalar import Int32
from tilewright.language.value import Index, Value

DEFAULT_ROUNDS = 10


@direct
def program_id(axis: int | str) -> Int32:
    """The place of this program on an axis of the grid: 0, 1 or 2.

    On "pe", "cube" and "sip" it is the place of its PE in its cube, of the cube in its SIP, and of
    the SIP, among those that the launch uses.
    """
    return Int32(current_program().place(axis)[0])


def num_programs(axis: int | str) -> Int32:
    """How many places an axis has: of the grid, or "pe", "cube" and "sip" of the launch."""
    return Int32(current_program().place(axis)[1])


@direct
def arange(start: int, end: int) -> Index:
    """The integers from start to end, as an index that costs nothing until it is computed with."""
    program = current_program()
    if not isinstance(start, int) or not isinstance(end, int) or end <= start:
        found = f"tl.arange({start!r}, {end!r})"
        raise program.error(found, "two integers with start < end", "correct the range")
    index: Index = program.index_range(int(start), int(end))
    return index


def full(shape: Any, value: Any, dtype: Any) -> Any:
    """A block that holds one value everywhere."""
    program = current_program()
    extents = program.extents(shape)
    wanted = program.dtype(dtype)
    if isinstance(value, Value):
        return carry_out("full", (value,), extents, None, wanted)
    if not extents:
        return program.constant(value, wanted)
    return carry_out("full", (), extents, value, wanted)


def zeros(shape: Any, dtype: Any = float32) -> Any:
    """A block of zeros."""
    return full(shape, 0, dtype)


def zeros_like(value: Any) -> Any:
    """Zeros of the shape and dtype of another block."""
    return full(value.shape, 0, value.dtype)


def to_tensor(x: Any) -> Any:
    """A number as a block of shape ()."""
    program = current_program()
    return x if isinstance(x, Value) else program.block(x)


def cdiv(x: Any, div: Any) -> Any:
    """The quotient, rounded up."""
    return (x + (div - 1)) // div


def next_power_of_2(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(0, int(n) - 1).bit_length()


# -- random numbers by counting: one seed and offset give one number everywhere -----------------


def _draw(name: str, what: str) -> Callable[..., Any]:
    def function(seed: Any, offset: Any, n_rounds: int = DEFAULT_ROUNDS) -> Any:
        return carry_out(name, (seed, offset), n_rounds)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what} for each offset, by Philox."
    return function


rand = _draw("rand", "A float in [0, 1)")
rand4x = _draw("rand4x", "Four floats in [0, 1)")
randint = _draw("randint", "A uint32")
randint4x = _draw("randint4x", "Four uint32")
randn = _draw("randn", "A normal float")
randn4x = _draw("randn4x", "Four normal floats")


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = DEFAULT_ROUNDS) -> Any:
    """Four words for each counter of four words."""
    return carry_out("philox", (seed, c0, c1, c2, c3), n_rounds)


def uint_to_uniform_float(x: Any) -> Any:
    """Words as floats in [0, 1)."""
    return carry_out("uint_to_uniform_float", (x,))


def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two uniform floats as two normal ones."""
    return carry_out("pair_uniform_to_normal", (u1, u2))
