"""Which dtype an op computes in: Triton's promotion of blocks and of Python's weak scalars."""

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from tilewright.errors import KernelTypeError
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


def common_dtype(op: str, operands: Sequence[Operand]) -> DType:
    """The dtype of an op with three operands: blocks first, then numbers as weak scalars."""
    blocks = [operand for operand in operands if isinstance(operand, DType)]
    numbers = [scalar_dtype(each, op) for each in operands if not isinstance(each, DType)]

    def fold(dtypes: list[DType]) -> DType:
        return reduce(lambda left, right: _promoted(op, left, right), dtypes)

    if not blocks:
        return fold(numbers)
    if not numbers:
        return fold(blocks)
    block, number = fold(blocks), fold(numbers)
    return _promoted(op, block, block if number.kind() <= block.kind() else number)
