"""Bits of integers: and, or, xor, not, shifts, high halves of products."""

from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType
from tilewright.language.dtype import DType, int1
from tilewright.language.meaning.bound import Array, Bound, Meaning, refuse
from tilewright.language.meaning.elementwise import (
    Function,
    arithmetic,
    bind_elementwise,
    computed_dtype,
    need_integers,
)

Types = tuple[BlockType, ...]

_BITWISE: dict[str, Function] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _bind_bitwise(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    need_integers(op, types, computed_dtype(op, types))
    return bind_elementwise(op, types, _BITWISE[op], cost_op=op)


def _bind_not(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """All bits of an integer; of int1 there is one."""
    need_integers(op, types, types[0].dtype)
    return bind_elementwise(op, types, np.invert, cost_op=op)


def _bind_shl(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """By the width or more, or by a negative amount, the result is 0."""
    computed = computed_dtype(op, types)
    need_integers(op, types, computed)
    wide = arithmetic(computed)
    return bind_elementwise(op, types, np.left_shift, cost_op=op, computed=computed, wide=wide)


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

        function = _arithmetic_shift(wide, signed)
    return bind_elementwise(op, types, function, cost_op=op, computed=computed, wide=wide)


def _arithmetic_shift(wide: np.dtype[Any], signed: np.dtype[Any]) -> Function:
    return lambda left, right: np.right_shift(left.view(signed), right.view(signed)).view(wide)


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
    _need_words(op, types, computed)
    unsigned = np.dtype(f"uint{computed.primitive_bitwidth}")
    half = high_half if computed.primitive_bitwidth == 64 else _high_half_32

    def function(left: Array, right: Array) -> Any:
        return half(left.view(unsigned), right.view(unsigned)).view(computed.storage)

    return bind_elementwise(op, types, function, cost_op="mul", computed=computed)


def _need_words(op: str, types: Types, computed: DType) -> None:
    if not computed.is_int() or computed.primitive_bitwidth not in (32, 64):
        refuse(op, types, "integers of 32 or 64 bits", "cast the operands")


def _bind_logical(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """On truth: an operand of another dtype counts as whether it is not 0."""
    function = {"logical_and": np.logical_and, "logical_or": np.logical_or}.get(op, np.logical_not)
    cost_op = op.removeprefix("logical_")
    computed = computed_dtype(op, types)
    gives = np.dtype(np.bool_)
    return bind_elementwise(
        op, types, function, cost_op=cost_op, computed=computed, gives=gives, result=int1
    )


INTEGER: tuple[Meaning, ...] = (
    *(Meaning(name, (2,), (), _bind_bitwise) for name in _BITWISE),
    Meaning("not", (1,), (), _bind_not),
    Meaning("shl", (2,), (), _bind_shl),
    Meaning("shr", (2,), (), _bind_shr),
    Meaning("umulhi", (2,), (), _bind_umulhi),
    Meaning("logical_and", (2,), (), _bind_logical),
    Meaning("logical_or", (2,), (), _bind_logical),
    Meaning("logical_not", (1,), (), _bind_logical),
)
