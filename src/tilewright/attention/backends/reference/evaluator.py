"""How an op is evaluated: a function of the op, its operands, their types and the frame."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.graph import Op, Types

Evaluator: TypeAlias = Callable[[Any, tuple[Array, ...], Types, Frame], Array]
"""Operands are [heads or 1, pages or 1, r, c] in float32, int32 or bool; so is the result."""
EvaluatorTable: TypeAlias = dict[type[Op], Evaluator]


def per_element(function: Callable[..., Array]) -> Evaluator:
    """From ``function(xp, op, *operands)``, for ops that look at one element at a time."""

    def evaluate(op: Any, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
        return function(frame.namespace.xp, op, *operands)

    return evaluate
