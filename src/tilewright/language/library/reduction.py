"""Blocks made smaller: sums, extremes and where they are."""

from typing import Any

from tilewright.language.current import current_program

__all__ = ("max", "min", "sum")


def sum(  # Triton's name
    input: Any,
    axis: int | None = None,
    keep_dims: bool = False,
    dtype: Any = None,
) -> Any:
    """The sum over an axis, or over all elements."""
    program = current_program()
    return program.compute("sum", (program.block(input),), (axis, keep_dims, dtype))


def max(
    input: Any,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The greatest element over an axis, with its index if asked for."""
    program = current_program()
    return program.compute("max", (program.block(input),), (axis, keep_dims, return_indices))


def min(
    input: Any,
    axis: int | None = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The least element over an axis, with its index if asked for."""
    program = current_program()
    return program.compute("min", (program.block(input),), (axis, keep_dims, return_indices))
