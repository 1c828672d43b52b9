"""Arithmetic of dtypes and known scalars: what an op computes in, by promotion, and what it gives.

Blocks and Python's weak scalars are promoted as Triton does it. A scalar result of int32 or int64
that does not fit is an error; all other integers wrap, as blocks do.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from tilewright.errors import KernelError, KernelTypeError
from tilewright.language.dtype import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)

Scalar: TypeAlias = bool | int | float
Operand: TypeAlias = DType | Scalar  # a block's dtype, or a number that the kernel wrote

# floats narrower than f32 become f32
DIVISIONS = frozenset({"div", "fdiv", "floordiv", "mod", "quotient", "remainder"})

_SMALLEST_FLOAT32 = 2.0**-126
_LARGEST_FLOAT32 = (2 - 2.0**-23) * 2.0**127


def scalar_dtype(value: Scalar, where: str = "scalar") -> DType:
    """The dtype of a number by itself: the first of i32, u32, i64, u64 that has it; f32 or f64.

    >>> scalar_dtype(2**31), scalar_dtype(1e300), scalar_dtype(True)
    (tl.uint32, tl.float64, tl.int1)
    """
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for dtype in (int32, uint32, int64, uint64):
            if dtype.get_int_min_value() <= value <= dtype.get_int_max_value():
                return dtype
        raise KernelTypeError(where, f"the integer {value}", "at most 64 bits", "use a smaller one")
    magnitude = abs(value)
    if magnitude in (0.0, float("inf")) or value != value:
        return float32
    return float32 if _SMALLEST_FLOAT32 <= magnitude <= _LARGEST_FLOAT32 else float64


def integer_dtype(left: DType, right: DType) -> DType:
    """C's usual arithmetic conversions, without its promotion to int."""
    if left.signed == right.signed:
        return left if left.int_bitwidth > right.int_bitwidth else right
    unsigned, signed = (right, left) if left.signed else (left, right)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def computation_dtype(op: str, left: Operand, right: Operand) -> DType:
    """What both operands of ``op`` are converted to before it computes.

    >>> computation_dtype("add", float16, 2.5), computation_dtype("add", int32, 2.5)
    (tl.float16, tl.float32)
    """
    left_type = left if isinstance(left, DType) else scalar_dtype(left, op)
    right_type = right if isinstance(right, DType) else scalar_dtype(right, op)
    if isinstance(left, DType) != isinstance(right, DType):
        block, number = (left_type, right_type) if left is left_type else (right_type, left_type)
        if number.kind() <= block.kind():  # a weak scalar has no say
            left_type = right_type = block
    return _promoted(op, left_type, right_type)


def _promoted(op: str, left: DType, right: DType) -> DType:
    both = (left, right)
    if float64 in both:
        return float64
    if op in DIVISIONS and (left.is_floating() or right.is_floating()):
        return float32
    if float32 in both:
        return float32
    if float16 in both:
        return float16
    if bfloat16 in both:
        return bfloat16 if left is right else float32
    if left.is_fp8() and right.is_fp8():
        return left if left is right else float16
    if left.is_floating() or right.is_floating():
        expected = "two floats, or two integers"
        fix = f"cast the integer to {float16!r}, or the fp8 to a wider float"
        raise KernelTypeError(op, f"{left!r} and {right!r}", expected, fix)
    if op in DIVISIONS and left.signed != right.signed:
        found, expected = f"{left!r} and {right!r}", "integers of one signedness"
        raise KernelTypeError(op, found, expected, "cast one of them")
    return integer_dtype(left, right)


def common_dtype(op: str, dtypes: Sequence[DType]) -> DType:
    """The dtype that blocks are converted to, however many there are."""
    return reduce(partial(_promoted, op), dtypes)


Number = int | float


def number_as(value: Number, dtype: DType) -> Number:
    """Convert a number as a cast does: round floats, cut fractions, keep the low bits."""
    if dtype.is_floating():
        return float(np.asarray(value).astype(dtype.compute).astype(dtype.storage))
    if dtype.is_bool():
        return int(value != 0)
    if isinstance(value, float) and not np.isfinite(value):
        fix = "choose another value with tl.where first"
        raise KernelError("scalar", f"{value} converted to {dtype!r}", "a finite number", fix)
    return _wrapped(int(value), dtype)


def reinterpreted(value: Number, source: DType, wanted: DType) -> Number:
    """The bits of a number of one dtype as a number of another."""
    if source.primitive_bitwidth != wanted.primitive_bitwidth:
        found, fix = f"the bits of {source!r} as {wanted!r}", "leave bitcast out"
        raise KernelTypeError("scalar", found, "dtypes of one width", fix)
    bits = np.asarray(value).astype(source.storage).view(wanted.storage)
    number: Number = int(bits) if wanted.is_int() else float(bits)
    return number


def computed(
    op: str, left: Number, right: Number, left_type: Operand, right_type: Operand
) -> tuple[Number, DType]:
    """The result of an operator and its dtype; a type is a dtype, or the number if it is weak."""
    dtype = computation_dtype(op, left_type, right_type)
    if op == "div" and not dtype.is_floating():
        dtype = float32
    if dtype.is_floating():
        return _float_result(op, left, right, dtype), dtype
    keeps_sign = op == "shr" and isinstance(left_type, DType) and left_type.signed
    one = _operand(op, left, left_type, dtype, keeps_sign)
    other = _operand(op, right, right_type, dtype)
    result = _shifted(op, one, other, dtype) if op in ("shl", "shr") else _INTEGER[op](one, other)
    if dtype not in (int32, int64):
        return _wrapped(result, dtype), dtype
    if not dtype.get_int_min_value() <= result <= dtype.get_int_max_value():
        wider = "convert an operand with .to(tl.int64)" if dtype is int32 else "use smaller sizes"
        raise KernelError("scalar arithmetic", f"{result}", f"a value that fits {dtype}", wider)
    return result, dtype


def compared(op: str, left: Number, right: Number, left_type: Operand, right_type: Operand) -> bool:
    """Whether a comparison holds, in the dtype that both are converted to."""
    dtype = computation_dtype(op, left_type, right_type)
    if dtype.is_floating():
        return bool(_COMPARISON[op](number_as(left, dtype), number_as(right, dtype)))
    one, other = (_operand(op, left, left_type, dtype), _operand(op, right, right_type, dtype))
    return bool(_COMPARISON[op](one, other))


def _float_result(op: str, left: Number, right: Number, dtype: DType) -> float:
    function = _FLOAT.get(op)
    if function is None:
        fix = "convert the operands to integers first"
        raise KernelTypeError(op, f"{op} of {dtype!r}", "integers", fix)
    compute = dtype.compute.type
    with np.errstate(all="ignore"):
        one, other = compute(number_as(left, dtype)), compute(number_as(right, dtype))
        return float(np.asarray(function(one, other)).astype(dtype.storage))


def _operand(
    op: str, value: Number, operand: Operand, dtype: DType, keeps_sign: bool = False
) -> int:
    """An integer in the dtype of the computation; a weak number has to fit it."""
    number = int(value)
    if isinstance(operand, DType):
        return number if keeps_sign else _wrapped(number, dtype)
    if not dtype.get_int_min_value() <= number <= dtype.get_int_max_value():
        fix = "convert the scalar, or write a number that fits"
        raise KernelTypeError(op, f"{number} beside {dtype!r}", f"a number that fits {dtype}", fix)
    return number


def _wrapped(value: int, dtype: DType) -> int:
    bits = dtype.primitive_bitwidth
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.signed and low >> (bits - 1) else low


def _shifted(op: str, value: int, amount: int, dtype: DType) -> int:
    """Shift an integer; by its width or more, or by a negative amount, only the sign stays."""
    if not 0 <= amount < dtype.primitive_bitwidth:
        return -1 if op == "shr" and value < 0 else 0
    return value << amount if op == "shl" else value >> amount


def _quotient(left: int, right: int) -> int:
    """Divide as C and Triton do: towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_INTEGER: Mapping[str, Callable[[int, int], int]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "pow")},
    **{name: getattr(operator, f"__{name}__") for name in ("and", "or", "xor")},
    "quotient": _quotient,
    "remainder": _remainder,
    "maximum": max,
    "minimum": min,
}
_FLOAT: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "remainder": np.fmod,
    "pow": np.power,
    "maximum": np.fmax,
    "minimum": np.fmin,
}
_COMPARISON: Mapping[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}
