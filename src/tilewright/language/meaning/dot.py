"""Matrix products: narrow operands multiplied and added up in f32, rounded once.

The machine multiplies f32 exactly as IEEE says, so every ``input_precision`` gives that; sums are
never kept in less than f32, so ``max_num_imprecise_acc`` has nothing to limit.
"""

from math import prod
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import (
    DType,
    bfloat16,
    dtype_of,
    float16,
    float32,
    float64,
    int8,
    int32,
    uint8,
)
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    GemmCharge,
    Meaning,
    Types,
    refuse,
)
from tilewright.language.meaning.convert import from_compute, same, to_compute
from tilewright.language.meaning.elementwise import Function

INPUT_PRECISIONS = (None, "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
_FLOAT32_INTEGER = 2**24  # up to here every integer is a float32


def _bind_dot(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: left (..., m, k), right (..., k, n) and optionally an accumulator (..., m, n)."""
    input_precision, max_imprecise, given = attributes
    left, right = types[:2]
    shape = _checked_shape(op, types)
    _check_precision(op, types, input_precision, max_imprecise)
    dtype = _result_dtype(op, types, None if given is None else dtype_of(given, op))
    result = block_type(dtype, shape)
    if len(types) == 3 and types[2] is not result:
        refuse(op, types, f"an accumulator {result}", "cast it, or name its dtype as out_dtype")
    product = _product(left.dtype, right.dtype, dtype, left.shape[-1])
    charge = _charge(left, right)
    if len(types) == 2:
        return Bound(result, product, (charge,), num_factors=2)
    widen, narrow = to_compute(dtype, dtype), from_compute(dtype.compute, dtype)
    wide = float32 if dtype is float16 else dtype
    wide_product = _product(left.dtype, right.dtype, wide, left.shape[-1])

    def accumulate(a: Array, b: Array, accumulator: Array) -> Array:
        total = wide_product(a, b)
        return narrow(np.add(total, widen(accumulator), out=total))

    return Bound(result, accumulate, (charge,), num_factors=2)


def _checked_shape(op: str, types: Types) -> tuple[int, ...]:
    left, right = types[:2]
    if left.rank != right.rank or left.rank < 2:
        refuse(op, types, "two blocks of equal rank, 2 or more", "reshape or broadcast them")
    if left.shape[:-2] != right.shape[:-2] or left.shape[-1] != right.shape[-2]:
        refuse(op, types, "(..., m, k) and (..., k, n)", "transpose or reshape an operand")
    return (*left.shape[:-1], right.shape[-1])


def _check_precision(op: str, types: Types, precision: Any, max_imprecise: Any) -> None:
    name = precision.lower() if isinstance(precision, str) else precision
    if name not in INPUT_PRECISIONS:
        expected = "one of " + ", ".join(str(each) for each in INPUT_PRECISIONS[1:])
        raise KernelError(op, f"input_precision={precision!r}", expected, "name one of them")
    k = types[0].shape[-1]
    if max_imprecise is not None and types[0].dtype.is_fp8() and max_imprecise > k:
        found = f"max_num_imprecise_acc={max_imprecise}"
        raise KernelError(op, found, f"at most k = {k}", "lower it")


def _result_dtype(op: str, types: Types, given: DType | None) -> DType:
    left, right = types[0].dtype, types[1].dtype
    if left is not right and not (left.is_fp8() and right.is_fp8()):
        refuse(op, types, "two operands of one dtype", "cast one of them")
    if left in (int8, uint8):
        return int32
    if not left.is_floating():
        refuse(op, types, "int8, uint8 or floats", "cast the operands")
    if left is float64:
        return float64
    if given is bfloat16:
        refuse(op, types, "out_dtype float32 or float16", "cast the result with .to(tl.bfloat16)")
    accumulator = types[2].dtype if len(types) == 3 else float32
    wanted = given or accumulator
    if left in (float32, bfloat16):
        return float32
    if wanted not in (float32, float16):
        refuse(op, types, "out_dtype float32 or float16", "cast the result instead")
    return wanted


def _product(left: DType, right: DType, result: DType, k: int) -> Function:
    if left.is_int():
        return _integer_product(left, k)
    first, second = to_compute(left, left), to_compute(right, right)
    finish = from_compute(left.compute, result)
    if first is second is finish is same:
        return np.matmul
    return lambda left, right: finish(np.matmul(first(left), second(right)))


def _integer_product(dtype: DType, k: int) -> Function:
    """By BLAS in floats that hold every partial sum exactly: far faster than integer loops."""
    largest = k * max(abs(dtype.get_int_min_value()), dtype.get_int_max_value()) ** 2
    exact = np.float32 if largest <= _FLOAT32_INTEGER else np.float64

    def product(left: Array, right: Array) -> Any:
        sums = np.matmul(left.astype(exact), right.astype(exact))
        return sums.astype(np.int64).astype(np.int32)  # wraps beyond 32 bits

    return product


def _charge(left: BlockType, right: BlockType) -> Charge | GemmCharge:
    """Charge the GEMM unit; what it does not take (f64) the vector unit multiplies and adds."""
    *batch, m, k = left.shape
    n = right.shape[-1]
    if left.dtype is float64:
        return Charge("fma", prod(batch) * m * n * k, left.dtype)
    return GemmCharge(m, n, k, prod(batch), left.dtype)


DOTS: tuple[Meaning, ...] = (
    Meaning("dot", (2, 3), ("input_precision", "max_num_imprecise_acc", "out_dtype"), _bind_dot),
)
