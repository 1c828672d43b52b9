"""Building ops that work element by element: promotion, conversion, rounding once."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DType, float32, int1, int8
from tilewright.language.meaning.bound import Bound, Charge, refuse
from tilewright.language.meaning.convert import Convert, from_compute, same, to_compute
from tilewright.language.meaning.shape_rule import broadcast_shape
from tilewright.language.promote import common_dtype, computation_dtype

Function: TypeAlias = Callable[..., Any]

BOOL = np.dtype(np.bool_)


def computed_dtype(op: str, types: tuple[BlockType, ...]) -> DType:
    """What the operands are converted to before the op computes."""
    match types:
        case (only,):
            return only.dtype
        case (left, right):
            return computation_dtype(op, left.dtype, right.dtype)
    return common_dtype(op, [each.dtype for each in types])


def arithmetic(dtype: DType) -> np.dtype[Any]:
    """Where ``dtype`` adds and multiplies: int1 in int8, of which the lowest bit stays."""
    return int8.storage if dtype is int1 else dtype.compute


def charge_for(op: str, num_elements: int, dtype: DType, times: int = 1) -> Charge:
    """The lanes compute narrow floats in f32."""
    narrow = dtype.is_floating() and dtype.primitive_bitwidth < float32.primitive_bitwidth
    return Charge(op, num_elements, float32 if narrow else dtype, times)


def converted(function: Function, converts: tuple[Convert, ...], finish: Convert) -> Function:
    """``function`` between conversions; where there are none, the function itself."""
    if all(convert is same for convert in converts):
        if finish is same:
            return function
        return lambda *arrays: finish(function(*arrays))
    match converts:
        case (only,):
            return lambda array: finish(function(only(array)))
        case (first, second):
            return lambda left, right: finish(function(first(left), second(right)))
    return lambda *arrays: finish(
        function(*(convert(array) for convert, array in zip(converts, arrays, strict=True)))
    )


def bind_elementwise(
    op: str,
    types: tuple[BlockType, ...],
    function: Function,
    *,
    cost_op: str,
    computed: DType | None = None,  # by default what promotion says
    wide: np.dtype[Any] | None = None,  # what function computes in, by default computed.compute
    gives: np.dtype[Any] | None = None,  # what function returns, by default wide
    result: DType | None = None,  # by default computed
) -> Bound:
    """``function`` on operands that are converted to one dtype; rounded once, to the result's."""
    computed = computed or computed_dtype(op, types)
    wide = wide or computed.compute
    result = result or computed
    converts = tuple(_widening(each.dtype, computed, wide) for each in types)
    result_type = block_type(result, broadcast_shape(op, types))
    run = converted(function, converts, from_compute(gives or wide, result))
    return Bound(result_type, run, (charge_for(cost_op, result_type.num_elements, computed),))


def _widening(source: DType, computed: DType, wide: np.dtype[Any]) -> Convert:
    convert = to_compute(source, computed)
    if wide == computed.compute:
        return convert
    return lambda array: convert(array).astype(wide)


def need_floats(op: str, types: tuple[BlockType, ...], dtype: DType) -> None:
    if not dtype.is_floating():
        refuse(op, types, "floats", "cast the operand with .to(tl.float32)")


def need_integers(op: str, types: tuple[BlockType, ...], dtype: DType) -> None:
    if not dtype.is_int():
        refuse(op, types, "integers", "cast the operand, or use an op for floats")
