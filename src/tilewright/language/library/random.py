"""Random numbers by counting: the same seed and offset give the same number everywhere."""

from collections.abc import Callable
from typing import Any

from tilewright.language.current import current_program

DEFAULT_ROUNDS = 10


def _draw(name: str, what: str) -> Callable[..., Any]:
    def function(seed: Any, offset: Any, n_rounds: int = DEFAULT_ROUNDS) -> Any:
        program = current_program()
        operands = (program.block(seed), program.block(offset))
        return program.compute(name, operands, (n_rounds,))

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
    program = current_program()
    operands = tuple(program.block(value) for value in (seed, c0, c1, c2, c3))
    return program.compute("philox", operands, (n_rounds,))


def uint_to_uniform_float(x: Any) -> Any:
    """Words as floats in [0, 1)."""
    program = current_program()
    return program.compute("uint_to_uniform_float", (program.block(x),))


def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two uniform floats as two normal ones."""
    program = current_program()
    return program.compute("pair_uniform_to_normal", (program.block(u1), program.block(u2)))
