"""Ops that work element by element: promotion, conversion, one function, rounding once."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from tilewright.language.block_type import block_type
from tilewright.language.dtype import DType, int1, int8
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Meaning,
    Types,
    broadcast_shape,
    charge_for,
    need_floats,
    need_integers,
)
from tilewright.language.meaning.convert import Convert, from_compute, same, to_compute
from tilewright.language.promote import common_dtype

Function: TypeAlias = Callable[..., Any]

BOOL = np.dtype(np.bool_)


def computed_dtype(op: str, types: Types) -> DType:
    """What the operands are converted to before the op computes."""
    return common_dtype(op, [each.dtype for each in types])


def arithmetic(dtype: DType) -> np.dtype[Any]:
    """Where ``dtype`` adds and multiplies: int1 in int8, of which the lowest bit stays."""
    return int8.storage if dtype is int1 else dtype.compute


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
    types: Types,
    function: Function,
    cost_op: str,
    computed: DType | None = None,  # by default what promotion says
    wide: np.dtype[Any] | None = None,  # what function computes in, by default computed.compute
    is_truth: bool = False,  # what function returns, and the result
) -> Bound:
    """``function`` on operands that are converted to one dtype; rounded once, to the result's."""
    computed = computed or computed_dtype(op, types)
    wide = wide or computed.compute
    converts = tuple(_widening(each.dtype, computed, wide) for each in types)
    result = block_type(int1 if is_truth else computed, broadcast_shape(op, types))
    run = converted(function, converts, from_compute(BOOL if is_truth else wide, result.dtype))
    ops = cost_op.split()  # one after the other
    return Bound(result, run, tuple(charge_for(o, result.num_elements, computed) for o in ops))


def _widening(source: DType, computed: DType, wide: np.dtype[Any]) -> Convert:
    convert = to_compute(source, computed)
    if wide == computed.compute:
        return convert
    return lambda array: convert(array).astype(wide)


def elementwise(
    name: str,
    num_operands: int,
    function: Function,
    cost_op: str = "",  # by default the name
    *,
    takes: Callable[[str, Types, DType], None] | None = None,
    wraps: bool = False,
    is_truth: bool = False,
) -> Meaning:
    """Define an op without attributes that is one function, whatever dtype it computes in.

    ``takes`` refuses operands that are computed in a dtype without the function. An op that
    ``wraps`` adds or multiplies, so int1 overflows; the result of one that ``is_truth`` is int1.
    """

    def bind(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
        computed = computed_dtype(op, types)
        if takes is not None:
            takes(op, types, computed)
        wide = arithmetic(computed) if wraps else None
        how = cost_op or name, computed, wide, is_truth
        return bind_elementwise(op, types, function, *how)

    return Meaning(name, (num_operands,), (), bind)


def _of_python(function: Callable[[float], float]) -> Function:
    """A function that NumPy lacks: element by element in f64, rounded once."""
    each = np.frompyfunc(function, 1, 1)
    return lambda array: np.asarray(each(array.astype(np.float64))).astype(array.dtype)


def _round_half_away(array: Array) -> Array:
    """C's round: halves go away from zero."""
    whole = np.trunc(array)
    return np.where(np.abs(array - whole) >= array.dtype.type(0.5), whole + np.sign(array), whole)


def _floats(*rows: tuple[str, Function, str], operands: int = 1) -> Iterator[Meaning]:
    """Functions of floats: name, function, lines of the cost table."""
    for name, function, cost_op in rows:
        yield elementwise(name, operands, function, cost_op, takes=need_floats)


ELEMENTWISE: tuple[Meaning, ...] = (
    elementwise("add", 2, np.add, wraps=True),
    elementwise("sub", 2, np.subtract, wraps=True),
    elementwise("mul", 2, np.multiply, wraps=True),
    elementwise("neg", 1, np.negative, wraps=True),  # the lowest integer is its own negative
    elementwise("abs", 1, np.abs, wraps=True),  # and its own magnitude
    elementwise("mod", 2, np.mod, wraps=True),  # of the divisor's sign, as Python's
    elementwise("remainder", 2, np.fmod, "mod", wraps=True),  # of the dividend's, as Triton's
    elementwise("eq", 2, np.equal, is_truth=True),
    elementwise("ne", 2, np.not_equal, is_truth=True),
    elementwise("lt", 2, np.less, is_truth=True),
    elementwise("le", 2, np.less_equal, is_truth=True),
    elementwise("gt", 2, np.greater, is_truth=True),
    elementwise("ge", 2, np.greater_equal, is_truth=True),
    elementwise("logical_and", 2, np.logical_and, "and", is_truth=True),
    elementwise("logical_or", 2, np.logical_or, "or", is_truth=True),
    elementwise("logical_not", 1, np.logical_not, "not", is_truth=True),
    elementwise("and", 2, np.bitwise_and, takes=need_integers),
    elementwise("or", 2, np.bitwise_or, takes=need_integers),
    elementwise("xor", 2, np.bitwise_xor, takes=need_integers),
    elementwise("not", 1, np.invert, takes=need_integers),  # all bits; of int1 there is one
    elementwise("shl", 2, np.left_shift, takes=need_integers, wraps=True),  # by too much: 0
    elementwise("isfinited", 1, np.isfinite, "lt", takes=need_floats, is_truth=True),
    elementwise("isinf", 1, np.isinf, "eq", takes=need_floats, is_truth=True),
    elementwise("isnan", 1, np.isnan, "ne", takes=need_floats, is_truth=True),
    *_floats(
        ("acos", np.arccos, "cos"),
        ("asin", np.arcsin, "sin"),
        ("atan", np.arctan, "sin"),
        ("cbrt", np.cbrt, "sqrt"),
        ("ceil", np.ceil, "ceil"),
        ("cos", np.cos, "cos"),
        ("cosh", np.cosh, "exp"),
        ("erf", _of_python(math.erf), "erf"),
        ("erfc", _of_python(math.erfc), "erf"),
        ("exp", np.exp, "exp"),
        ("exp10", lambda array: np.power(array.dtype.type(10), array), "exp"),
        ("exp2", np.exp2, "exp2"),
        ("expm1", np.expm1, "exp"),
        ("floor", np.floor, "floor"),
        ("log", np.log, "log"),
        ("log10", np.log10, "log"),
        ("log1p", np.log1p, "log"),
        ("log2", np.log2, "log2"),
        ("rint", np.rint, "floor"),
        ("round", _round_half_away, "floor"),
        ("rsqrt", lambda array: np.reciprocal(np.sqrt(array)), "rsqrt"),
        ("sigmoid", lambda array: 1 / (1 + np.exp(-array)), "neg exp add div"),
        ("sin", np.sin, "sin"),
        ("sinh", np.sinh, "exp"),
        ("sqrt", np.sqrt, "sqrt"),
        ("sqrt_rn", np.sqrt, "sqrt"),
        ("tan", np.tan, "sin"),
        ("tanh", np.tanh, "tanh"),
        ("trunc", np.trunc, "floor"),
    ),
    *_floats(
        ("atan2", np.arctan2, "div"),
        ("copysign", np.copysign, "select"),
        ("hypot", np.hypot, "sqrt"),
        ("pow", np.power, "exp"),
        ("div_rn", np.divide, "div"),
        operands=2,
    ),
)
