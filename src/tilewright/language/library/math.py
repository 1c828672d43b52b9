"""Arithmetic that is no operator: functions of elements, choices, products."""

from collections.abc import Callable
from typing import Any

from tilewright.language.current import current_program
from tilewright.language.dtype import float32
from tilewright.language.known import known_binary

__all__ = ("dot", "maximum", "minimum", "where")


def _unary(name: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        program = current_program()
        return program.compute(name, (program.block(x),))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of every element."
    return function


_UNARY_NAMES = """
    abs ceil cos erf exp exp2 floor log log2 rsqrt sigmoid sin sqrt sqrt_rn
"""

UNARY = {name: _unary(name) for name in _UNARY_NAMES.split()}


def maximum(x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The greater of two elements."""
    return _extreme("maximum", x, y, propagate_nan)


def minimum(x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The smaller of two elements."""
    return _extreme("minimum", x, y, propagate_nan)


def _extreme(op: str, x: Any, y: Any, propagate_nan: Any) -> Any:
    if isinstance(x, int | float) and isinstance(y, int | float):
        return max(x, y) if op == "maximum" else min(x, y)
    known = known_binary(op, x, y)
    if known is not None:
        return known
    program = current_program()
    operands = (program.block(x, y, op), program.block(y, x, op))
    return program.compute(op, operands, (bool(propagate_nan),))


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    program = current_program()
    operands = (
        program.block(condition),
        program.block(x, y, "where"),
        program.block(y, x, "where"),
    )
    return program.compute("where", operands)


def dot(
    input: Any,  # Triton's name
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = float32,
) -> Any:
    """The product of two matrices, added to ``acc`` if there is one."""
    program = current_program()
    operands = [program.block(input), program.block(other)]
    if acc is not None:
        operands.append(program.block(acc))
    attributes = (input_precision, max_num_imprecise_acc, out_dtype)
    return program.compute("dot", tuple(operands), attributes)
