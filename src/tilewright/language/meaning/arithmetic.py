"""Ops that work element by element by rules of their own: each binds in a function here."""

from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import float32, float64, int1
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Meaning,
    Types,
    broadcast_shape,
    charge_for,
    need_floats,
    need_integers,
    refuse,
)
from tilewright.language.meaning.convert import from_compute, same, to_compute, to_storage
from tilewright.language.meaning.elementwise import (
    Function,
    arithmetic,
    bind_elementwise,
    computed_dtype,
    converted,
)
from tilewright.language.promote import computation_dtype


def integer_quotient(left: Array, right: Array) -> Any:
    """C's division: toward zero. By zero it is 0; the lowest by -1 wraps to itself."""
    return np.floor_divide(left - np.fmod(left, right), right)


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


def _bind_quotient(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """``//`` of a plain kernel rounds down, as Python's; Triton's ``quotient`` cuts, as C's."""
    computed = computed_dtype(op, types)
    need_integers(op, types, computed)
    cuts = op == "quotient" and (computed.signed or computed is int1)
    function = integer_quotient if cuts else np.floor_divide
    wide = arithmetic(computed)
    return bind_elementwise(op, types, function, cost_op="floordiv", computed=computed, wide=wide)


def _maximum_with_nan(left: Array, right: Array) -> Array:
    """IEEE maximum: NaN if either is, and +0 above -0, of which NumPy may return either."""
    zeros = (left == 0) & (right == 0)
    return np.where(zeros, left + right, np.maximum(left, right))


def _minimum_with_nan(left: Array, right: Array) -> Array:
    zeros = (left == 0) & (right == 0)
    return np.where(zeros, -(-left - right), np.minimum(left, right))


def _bind_extreme(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Without ``propagate_nan`` a number beats NaN; which of two zeros comes is not defined.

    Operands of ``clamp``: value, low, high. Where low is above high, high comes out.
    """
    (propagate_nan,) = attributes
    extremes: tuple[Function, Function] = np.maximum, np.minimum
    if computed_dtype(op, types).is_floating():
        with_nan = _maximum_with_nan, _minimum_with_nan
        extremes = with_nan if propagate_nan else (np.fmax, np.fmin)
    maximum, minimum = extremes

    def clamp(value: Array, low: Array, high: Array) -> Any:
        return minimum(maximum(value, low), high)

    functions = {"maximum": maximum, "minimum": minimum, "clamp": clamp}
    return bind_elementwise(op, types, functions[op], cost_op=op)


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


# -- bits of integers ----------------------------------------------------------------------------


def _bind_shr(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Arithmetic if the left operand is signed, else logical.

    By the width or more, or by a negative amount, what stays is the sign.
    """
    computed = computed_dtype(op, types)
    need_integers(op, types, computed)
    wide = arithmetic(computed)
    function: Function = np.right_shift
    if types[0].dtype.signed and not computed.signed:  # promoted to unsigned, yet arithmetic
        signed = np.dtype(f"int{8 * wide.itemsize}")
        function = lambda a, b: np.right_shift(a.view(signed), b.view(signed)).view(wide)  # noqa: E731
    return bind_elementwise(op, types, function, cost_op=op, computed=computed, wide=wide)


def high_half(left: Array, right: Array) -> Any:
    """The upper 64 bits of products of unsigned 64-bit integers, from products of halves."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    left_low, left_high = left & low, left >> half
    right_low, right_high = right & low, right >> half
    cross = left_high * right_low + (left_low * right_low >> half)
    middle = left_low * right_high + (cross & low)
    return left_high * right_high + (cross >> half) + (middle >> half)


def _high_half_32(left: Array, right: Array) -> Array:
    product = np.multiply(left, right, dtype=np.uint64)
    return (product >> np.uint64(32)).astype(np.uint32)


def _bind_umulhi(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """The bits of signed operands count as unsigned."""
    computed = computed_dtype(op, types)
    if not computed.is_int() or computed.primitive_bitwidth not in (32, 64):
        refuse(op, types, "integers of 32 or 64 bits", "cast the operands")
    unsigned = np.dtype(f"uint{computed.primitive_bitwidth}")
    half = high_half if computed.primitive_bitwidth == 64 else _high_half_32

    def function(left: Array, right: Array) -> Any:
        return half(left.view(unsigned), right.view(unsigned)).view(computed.storage)

    return bind_elementwise(op, types, function, cost_op="mul", computed=computed)


# -- fused multiply-add: one rounding, without hardware that has it -----------------------------

_SPLITTER = 2.0**27 + 1  # cuts 53 bits into two halves whose products are exact


def _two_sum(left: Array, right: Array) -> tuple[Array, Array]:
    """The rounded sum and what rounding lost; exact."""
    total = left + right
    part = total - left
    return total, (left - (total - part)) + (right - part)


def _two_product(left: Array, right: Array) -> tuple[Array, Array]:
    """The rounded product and what rounding lost; exact unless an exponent runs out."""
    product = left * right
    left_high = left * _SPLITTER - (left * _SPLITTER - left)
    right_high = right * _SPLITTER - (right * _SPLITTER - right)
    left_low, right_low = left - left_high, right - right_high
    lost = left_high * right_high - product + left_high * right_low + left_low * right_high
    return product, lost + left_low * right_low


def _odd_sum(left: Array, right: Array) -> Array:
    """A sum of which the last bit is set if it is not exact: to round it again is to round once."""
    total, lost = _two_sum(left, right)
    even = (np.asarray(total).view(np.uint64) & np.uint64(1)) == 0
    step = np.isfinite(total) & (lost != 0) & even
    return np.where(step, np.nextafter(total, np.copysign(np.inf, lost)), total)


def _fma_narrow(left: Array, right: Array, addend: Array) -> Array:
    """In f64, where the product of two f32 is exact; the caller rounds the odd sum."""
    return _odd_sum(left * right, addend)


def _fma_float64(left: Array, right: Array, addend: Array) -> Array:
    """The algorithm of Boldo and Melquiond; where an exponent runs out, two roundings."""
    product, lost = _two_product(left, right)
    low, low_lost = _two_sum(addend, lost)
    high, high_lost = _two_sum(product, low)
    exact = high + _odd_sum(low_lost, high_lost)
    return np.where(np.isfinite(exact), exact, left * right + addend)


def _bind_fma(op: str, types: tuple[BlockType, ...], _: tuple[Any, ...]) -> Bound:
    computed = computed_dtype(op, types)
    wide = arithmetic(computed)
    function: Function = lambda left, right, addend: left * right + addend  # noqa: E731
    if computed is float64:
        function = _fma_float64
    elif computed.is_floating():
        function, wide = _fma_narrow, np.dtype(np.float64)
    return bind_elementwise(op, types, function, cost_op=op, computed=computed, wide=wide)


# -- ops that are made of others: one function here, the charges of all their parts -------------


def _bind_cdiv(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Operands: value, divisor: (value + (divisor - 1)) // divisor, so 7 over 2 is 4."""
    dtype = computed_dtype("floordiv", types)
    need_integers(op, types, dtype)

    def ceiling(value: Array, divisor: Array) -> Any:
        return integer_quotient(value + (divisor - dtype.compute.type(1)), divisor)

    return bind_elementwise(op, types, ceiling, cost_op="sub add floordiv", computed=dtype)


def _bind_swizzle2d(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Operands: i, j, size_i, size_j, size_g. Groups of size_g rows are walked column by column."""
    dtype = computed_dtype(op, types)
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
    charges = tuple(charge_for(each, result.num_elements, dtype) for each in ops.split())
    return Bound((result, result), run, charges)


ARITHMETIC: tuple[Meaning, ...] = (
    Meaning("div", (2,), (), _bind_div),
    Meaning("fdiv", (2,), ("ieee_rounding", "approx"), _bind_fdiv),
    *(Meaning(name, (2,), (), _bind_quotient) for name in ("floordiv", "quotient")),
    Meaning("maximum", (2,), ("propagate_nan",), _bind_extreme),
    Meaning("minimum", (2,), ("propagate_nan",), _bind_extreme),
    Meaning("clamp", (3,), ("propagate_nan",), _bind_extreme),
    Meaning("where", (3,), (), _bind_where),
    Meaning("shr", (2,), (), _bind_shr),
    Meaning("umulhi", (2,), (), _bind_umulhi),
    Meaning("fma", (3,), (), _bind_fma),
    Meaning("cdiv", (2,), (), _bind_cdiv),
    Meaning("swizzle2d", (5,), (), _bind_swizzle2d),
)
