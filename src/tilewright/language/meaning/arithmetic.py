"""Sums, products, quotients, comparisons, extremes and selection of numbers."""

from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import float32, int1
from tilewright.language.meaning.bound import Array, Bound, Meaning, refuse
from tilewright.language.meaning.convert import same, to_storage
from tilewright.language.meaning.elementwise import (
    BOOL,
    Function,
    arithmetic,
    bind_elementwise,
    charge_for,
    computed_dtype,
    converted,
    need_floats,
    need_integers,
)
from tilewright.language.meaning.shape_rule import broadcast_shape
from tilewright.language.promote import computation_dtype

Types = tuple[BlockType, ...]

_RING: dict[str, Function] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_COMPARISONS: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def integer_quotient(left: Array, right: Array) -> Any:
    """C's division: toward zero. By zero it is 0; the lowest by -1 wraps to itself."""
    return np.floor_divide(left - np.fmod(left, right), right)


def _bind_ring(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    computed = computed_dtype(op, types)
    wide = arithmetic(computed)
    return bind_elementwise(op, types, _RING[op], cost_op=op, computed=computed, wide=wide)


def _bind_comparison(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    return bind_elementwise(op, types, _COMPARISONS[op], cost_op=op, gives=BOOL, result=int1)


def _bind_div(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    computed = computed_dtype(op, types)
    computed = computed if computed.is_floating() else float32
    return bind_elementwise(op, types, np.divide, cost_op="div", computed=computed)


def _bind_fdiv(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Both modes of rounding are exact here; ``approx`` only allows what we do not use."""
    ieee_rounding, approx = attributes
    computed = computed_dtype(op, types)
    need_floats(op, types, computed)
    if approx and ieee_rounding:
        expected = "one way to round"
        raise KernelError(op, "approx and ieee_rounding", expected, "drop one of them")
    if approx and computed is not float32:
        refuse(op, types, "float32 operands for approx", "drop approx, or cast")
    return bind_elementwise(op, types, np.divide, cost_op="div", computed=computed)


def _bind_div_rn(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    need_floats(op, types, computed_dtype(op, types))
    return bind_elementwise(op, types, np.divide, cost_op="div")


def _bind_quotient(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """``//`` of a plain kernel rounds down, as Python's; Triton's ``quotient`` cuts, as C's."""
    computed = computed_dtype(op, types)
    need_integers(op, types, computed)
    cuts = op == "quotient" and (computed.signed or computed is int1)
    function = integer_quotient if cuts else np.floor_divide
    wide = arithmetic(computed)
    return bind_elementwise(op, types, function, cost_op="floordiv", computed=computed, wide=wide)


def _bind_remainder(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """``%`` of a plain kernel has the divisor's sign; Triton's ``remainder`` the dividend's."""
    computed = computed_dtype(op, types)
    wide = arithmetic(computed)
    function = np.fmod if op == "remainder" else np.mod
    return bind_elementwise(op, types, function, cost_op="mod", computed=computed, wide=wide)


def _maximum_with_nan(left: Array, right: Array) -> Array:
    """IEEE maximum: NaN if either is, and +0 above -0, of which NumPy may return either."""
    zeros = (left == 0) & (right == 0)
    return np.where(zeros, left + right, np.maximum(left, right))


def _minimum_with_nan(left: Array, right: Array) -> Array:
    zeros = (left == 0) & (right == 0)
    return np.where(zeros, -(-left - right), np.minimum(left, right))


def _extremes(*, floats: bool, propagate_nan: bool) -> tuple[Function, Function]:
    if not floats:
        return np.maximum, np.minimum
    if propagate_nan:
        return _maximum_with_nan, _minimum_with_nan
    return np.fmax, np.fmin


def _bind_extreme(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Without ``propagate_nan`` a number beats NaN; which of two zeros comes is not defined."""
    (propagate_nan,) = attributes
    floats = computed_dtype(op, types).is_floating()
    maximum, minimum = _extremes(floats=floats, propagate_nan=propagate_nan)
    return bind_elementwise(op, types, maximum if op == "maximum" else minimum, cost_op=op)


def _bind_clamp(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: value, low, high. Where low is above high, high comes out."""
    (propagate_nan,) = attributes
    floats = computed_dtype(op, types).is_floating()
    maximum, minimum = _extremes(floats=floats, propagate_nan=propagate_nan)

    def clamp(value: Array, low: Array, high: Array) -> Any:
        return minimum(maximum(value, low), high)

    return bind_elementwise(op, types, clamp, cost_op=op)


def _bind_where(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Operands: condition, value where it holds, value elsewhere."""
    condition, left, right = types
    dtype = computation_dtype(op, left.dtype, right.dtype)
    casts = (to_storage(condition.dtype, int1), *(to_storage(t.dtype, dtype) for t in types[1:]))
    result = block_type(dtype, broadcast_shape(op, types))

    def pick(holds: Array, where: Array, elsewhere: Array) -> Any:
        if where.shape == result.shape and holds.all():  # mostly: a mask that keeps nothing out
            return where
        return np.where(holds, where, elsewhere)

    run = converted(pick, casts, same)
    return Bound(result, run, (charge_for(op, result.num_elements, dtype),))


ARITHMETIC: tuple[Meaning, ...] = (
    *(Meaning(name, (2,), (), _bind_ring) for name in _RING),
    *(Meaning(name, (2,), (), _bind_comparison) for name in _COMPARISONS),
    Meaning("div", (2,), (), _bind_div),
    Meaning("fdiv", (2,), ("ieee_rounding", "approx"), _bind_fdiv),
    Meaning("div_rn", (2,), (), _bind_div_rn),
    *(Meaning(name, (2,), (), _bind_quotient) for name in ("floordiv", "quotient")),
    *(Meaning(name, (2,), (), _bind_remainder) for name in ("mod", "remainder")),
    Meaning("maximum", (2,), ("propagate_nan",), _bind_extreme),
    Meaning("minimum", (2,), ("propagate_nan",), _bind_extreme),
    Meaning("clamp", (3,), ("propagate_nan",), _bind_clamp),
    Meaning("where", (3,), (), _bind_where),
)
