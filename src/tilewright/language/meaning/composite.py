"""Ops that are made of others: one function here, the charges of all their parts."""

from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, float32
from tilewright.language.meaning.arithmetic import integer_quotient
from tilewright.language.meaning.bound import Array, Bound, Charge, Meaning
from tilewright.language.meaning.convert import from_compute, same, to_compute
from tilewright.language.meaning.elementwise import (
    charge_for,
    computed_dtype,
    converted,
    need_floats,
    need_integers,
)
from tilewright.language.meaning.reduction import greatest_number
from tilewright.language.meaning.shape_rule import broadcast_shape, wrap_axis
from tilewright.language.promote import common_dtype

Types = tuple[BlockType, ...]


def _parts(ops: str, elements: int, dtype: DType) -> tuple[Charge, ...]:
    return tuple(charge_for(op, elements, dtype) for op in ops.split())


def _bind_sigmoid(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    (only,) = types
    need_floats(op, types, only.dtype)
    one = only.dtype.compute.type(1)

    def sigmoid(array: Array) -> Any:
        return one / (one + np.exp(-array))

    convert = to_compute(only.dtype, only.dtype)
    run = converted(sigmoid, (convert,), from_compute(only.dtype.compute, only.dtype))
    return Bound(only, run, _parts("neg exp add div", only.num_elements, only.dtype))


def _bind_softmax(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Along ``axis``, by default the first. Narrow floats give f32, as their maximum does."""
    (only,) = types
    need_floats(op, types, only.dtype)
    axis = wrap_axis(op, types, 0 if attributes[0] is None else attributes[0], only.rank)
    dtype = only.dtype if only.dtype.primitive_bitwidth >= 32 else float32

    def softmax(array: Array) -> Any:
        powers = np.exp(array - greatest_number(array, axis, keepdims=True))
        return np.divide(powers, np.add.reduce(powers, axis=axis, keepdims=True), out=powers)

    run = converted(softmax, (to_compute(only.dtype, dtype),), same)
    charges = _parts("max sub exp sum div", only.num_elements, dtype)
    return Bound(only.with_dtype(dtype), run, charges)


def _bind_cdiv(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Operands: value, divisor: (value + (divisor - 1)) // divisor, so 7 over 2 is 4."""
    dtype = computed_dtype("floordiv", types)
    need_integers(op, types, dtype)

    def ceiling(value: Array, divisor: Array) -> Any:
        return integer_quotient(value + (divisor - dtype.compute.type(1)), divisor)

    result = block_type(dtype, broadcast_shape(op, types))
    converts = tuple(to_compute(each.dtype, dtype) for each in types)
    run = converted(ceiling, converts, from_compute(dtype.compute, dtype))
    return Bound(result, run, _parts("sub add floordiv", result.num_elements, dtype))


def _bind_swizzle2d(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Operands: i, j, size_i, size_j, size_g. Groups of size_g rows are walked column by column."""
    dtype = common_dtype(op, [each.dtype for each in types])
    need_integers(op, types, dtype)

    def swizzle(i: Array, j: Array, size_i: Array, size_j: Array, size_g: Array) -> Any:
        index, group_size = i * size_j + j, size_g * size_j
        first_row = integer_quotient(index, group_size) * size_g
        rows = np.minimum(size_i - first_row, size_g)  # the last group may have fewer
        inside = np.fmod(index, group_size)
        return first_row + np.fmod(inside, rows), integer_quotient(inside, rows)

    result = block_type(dtype, broadcast_shape(op, types))
    converts = tuple(to_compute(each.dtype, dtype) for each in types)
    finish = from_compute(dtype.compute, dtype)
    whole = converted(swizzle, converts, same)
    run = lambda *sizes: tuple(finish(each) for each in whole(*sizes))  # noqa: E731
    ops = "mul add mul floordiv mul sub minimum mod mod add floordiv"
    return Bound((result, result), run, _parts(ops, result.num_elements, dtype))


COMPOSITES: tuple[Meaning, ...] = (
    Meaning("sigmoid", (1,), (), _bind_sigmoid),
    Meaning("softmax", (1,), ("axis",), _bind_softmax),
    Meaning("cdiv", (2,), (), _bind_cdiv),
    Meaning("swizzle2d", (5,), (), _bind_swizzle2d),
)
