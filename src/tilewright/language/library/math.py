"""Arithmetic with options: extremes, choices, casts, quotients, products of matrices."""

from enum import Enum
from typing import Any

from tilewright.language.dtype import float32
from tilewright.language.executor import carry_out, current_program
from tilewright.language.front import planned
from tilewright.language.known import known_binary, known_where
from tilewright.language.scalar import Scalar, scalar_result
from tilewright.language.value import Block


class PropagateNan(Enum):
    """Whether an extreme of a number and NaN is NaN."""

    NONE = 0
    ALL = 0xFFFF


def add(x: Any, y: Any) -> Any:
    """x + y."""
    return current_program().binary("add", x, y)


def sub(x: Any, y: Any) -> Any:
    """x - y."""
    return current_program().binary("sub", x, y)


def mul(x: Any, y: Any) -> Any:
    """x * y."""
    return current_program().binary("mul", x, y)


@planned
def maximum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> Any:
    """The greater of two elements."""
    return _extreme("maximum", x, y, propagate_nan)


@planned
def minimum(x: Any, y: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> Any:
    """The smaller of two elements."""
    return _extreme("minimum", x, y, propagate_nan)


def _extreme(op: str, x: Any, y: Any, propagate_nan: Any) -> Any:
    if isinstance(x, int | float) and isinstance(y, int | float):
        if isinstance(x, Scalar) or isinstance(y, Scalar):
            return scalar_result(op, x, y)
        return (max if op == "maximum" else min)(x, y)
    if type(x) is not Block and type(y) is not Block:
        known = known_binary(op, x, y)
        if known is not None:
            return known
    program = current_program()
    operands = (program.block(x, y, op), program.block(y, x, op))
    return program.compute(op, operands, (_propagates(propagate_nan),))


def _propagates(propagate_nan: Any) -> bool:
    if propagate_nan is PropagateNan.NONE:  # mostly, and the name of a choice is slow to ask
        return False
    name = getattr(propagate_nan, "name", propagate_nan)  # Triton's own choice has the same names
    return name in ("ALL", True)


@planned
def clamp(x: Any, min: Any, max: Any, propagate_nan: PropagateNan = PropagateNan.NONE) -> Any:
    """x, but no less than min and no more than max."""
    program = current_program()
    operands = (program.block(x), program.block(min, x), program.block(max, x))
    return program.compute("clamp", operands, (_propagates(propagate_nan),))


@planned
def fdiv(x: Any, y: Any, ieee_rounding: bool = False) -> Any:
    """x / y of floats."""
    program = current_program()
    operands = (program.block(x, y, "fdiv"), program.block(y, x, "fdiv"))
    return program.compute("fdiv", operands, (ieee_rounding, False))


@planned
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    program = current_program()
    known = known_where(condition, x, y)
    if known is not None:
        return known
    operands = program.block(condition), program.block(x, y, "where"), program.block(y, x, "where")
    return program.compute("where", operands)  # blocks are made in this order, which takes time


def cast(
    input: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> Any:
    """The same values as another dtype, or the same bits."""
    if isinstance(input, Scalar):
        return input.to(dtype, fp_downcast_rounding, bitcast)
    program = current_program()
    if fp_downcast_rounding is None:
        return program.convert(input, dtype, bitcast)
    return carry_out("cast", (input,), program.dtype(dtype), fp_downcast_rounding)


@planned
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: Any = None,
) -> Any:
    """The product of two matrices, added to ``acc`` if there is one."""
    operands = (input, other) if acc is None else (input, other, acc)
    wanted = None if out_dtype is None else current_program().dtype(out_dtype)
    return carry_out("dot", operands, input_precision, max_num_imprecise_acc, wanted)


@planned
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: str,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: str,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: Any = float32,
) -> Any:
    """The product of two matrices in microscaling formats."""
    operands = [each for each in (lhs, lhs_scale, rhs, rhs_scale, acc) if each is not None]
    formats = (lhs_format, rhs_format, lhs_scale is not None, rhs_scale is not None)
    dtype = current_program().dtype(out_dtype)
    return carry_out("dot_scaled", operands, *formats, lhs_k_pack, rhs_k_pack, dtype)


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """Places of a row-major grid, walked in groups of ``size_g`` rows."""
    values = (i, j, size_i, size_j, size_g)
    if all(isinstance(value, int) for value in values):
        return _swizzled(*values)
    return carry_out("swizzle2d", values)


def _swizzled(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    place = i * size_j + j
    group = size_g * size_j
    first = place // group * size_g
    rows = size_i - first if size_i - first < size_g else size_g
    inside = place % group
    return first + inside % rows, inside // rows
