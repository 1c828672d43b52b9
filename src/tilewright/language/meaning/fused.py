"""Fused multiply-add: one rounding, without hardware that has it."""

from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType
from tilewright.language.dtype import float64
from tilewright.language.meaning.bound import Array, Bound, Meaning
from tilewright.language.meaning.elementwise import arithmetic, bind_elementwise, computed_dtype

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
    if computed is float64:
        return bind_elementwise(op, types, _fma_float64, cost_op=op, computed=computed)
    if computed.is_floating():
        wide = np.dtype(np.float64)
        return bind_elementwise(op, types, _fma_narrow, cost_op=op, computed=computed, wide=wide)

    def wrapping(left: Array, right: Array, addend: Array) -> Array:
        return left * right + addend

    wide = arithmetic(computed)
    return bind_elementwise(op, types, wrapping, cost_op=op, computed=computed, wide=wide)


FUSED: tuple[Meaning, ...] = (Meaning("fma", (3,), (), _bind_fma),)
