"""Functions of one number, and those of two that math libraries have."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType
from tilewright.language.dtype import int1
from tilewright.language.meaning.bound import Array, Bound, Meaning
from tilewright.language.meaning.elementwise import (
    BOOL,
    Function,
    arithmetic,
    bind_elementwise,
    computed_dtype,
    need_floats,
)

Types = tuple[BlockType, ...]


def _rsqrt(array: Array) -> Any:
    return np.reciprocal(np.sqrt(array))


def _of_python(function: Callable[[float], float]) -> Function:
    """A function that NumPy lacks: element by element in f64, rounded once."""
    each = np.frompyfunc(function, 1, 1)
    return lambda array: np.asarray(each(array.astype(np.float64))).astype(array.dtype)


def _exp10(array: Array) -> Any:
    return np.power(array.dtype.type(10), array)


def _round_half_away(array: Array) -> Array:
    """C's round: halves go away from zero."""
    whole = np.trunc(array)
    return np.where(np.abs(array - whole) >= array.dtype.type(0.5), whole + np.sign(array), whole)


# name: function on the compute dtype, line of the cost table
_FLOAT_FUNCTIONS: dict[str, tuple[Function, str]] = {
    "acos": (np.arccos, "cos"),
    "asin": (np.arcsin, "sin"),
    "atan": (np.arctan, "sin"),
    "cbrt": (np.cbrt, "sqrt"),
    "ceil": (np.ceil, "ceil"),
    "cos": (np.cos, "cos"),
    "cosh": (np.cosh, "exp"),
    "erf": (_of_python(math.erf), "erf"),
    "erfc": (_of_python(math.erfc), "erf"),
    "exp": (np.exp, "exp"),
    "exp10": (_exp10, "exp"),
    "exp2": (np.exp2, "exp2"),
    "expm1": (np.expm1, "exp"),
    "floor": (np.floor, "floor"),
    "log": (np.log, "log"),
    "log10": (np.log10, "log"),
    "log1p": (np.log1p, "log"),
    "log2": (np.log2, "log2"),
    "rint": (np.rint, "floor"),
    "round": (_round_half_away, "floor"),
    "rsqrt": (_rsqrt, "rsqrt"),
    "sin": (np.sin, "sin"),
    "sinh": (np.sinh, "exp"),
    "sqrt": (np.sqrt, "sqrt"),
    "sqrt_rn": (np.sqrt, "sqrt"),
    "tan": (np.tan, "sin"),
    "tanh": (np.tanh, "tanh"),
    "trunc": (np.trunc, "floor"),
}
_FLOAT_PAIRS: dict[str, tuple[Function, str]] = {
    "atan2": (np.arctan2, "div"),
    "copysign": (np.copysign, "select"),
    "hypot": (np.hypot, "sqrt"),
    "pow": (np.power, "exp"),
}
_FLOAT_TESTS: dict[str, tuple[Function, str]] = {
    "isfinited": (np.isfinite, "lt"),
    "isinf": (np.isinf, "eq"),
    "isnan": (np.isnan, "ne"),
}


def _bind_float_function(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    need_floats(op, types, computed_dtype(op, types))
    function, cost_op = _FLOAT_FUNCTIONS.get(op) or _FLOAT_PAIRS[op]
    return bind_elementwise(op, types, function, cost_op=cost_op)


def _bind_float_test(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    need_floats(op, types, types[0].dtype)
    function, cost_op = _FLOAT_TESTS[op]
    return bind_elementwise(op, types, function, cost_op=cost_op, gives=BOOL, result=int1)


def _bind_sign_change(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Of integers the lowest is its own negative and its own magnitude."""
    dtype = types[0].dtype
    function: Function = np.negative if op == "neg" else np.abs
    wide = arithmetic(dtype)
    return bind_elementwise(op, types, function, cost_op=op, computed=dtype, wide=wide)


UNARY: tuple[Meaning, ...] = (
    *(Meaning(name, (1,), (), _bind_float_function) for name in _FLOAT_FUNCTIONS),
    *(Meaning(name, (2,), (), _bind_float_function) for name in _FLOAT_PAIRS),
    *(Meaning(name, (1,), (), _bind_float_test) for name in _FLOAT_TESTS),
    Meaning("abs", (1,), (), _bind_sign_change),
    Meaning("neg", (1,), (), _bind_sign_change),
)
