"""Products of matrices: narrow operands multiplied and added up in f32, rounded once.

The machine multiplies f32 exactly as IEEE says, so every ``input_precision`` gives that; sums are
never kept in less than f32, so ``max_num_imprecise_acc`` has nothing to limit. An operand in a
microscaling format (narrow elements, one power of two a group of K) is decoded to f32, multiplied
by its scales, then treated as f32. A scale is a byte e and stands for 2**(e - 127); 255 is NaN.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import (
    DType,
    bfloat16,
    dtype_of,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int32,
    uint8,
    uint16,
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


# -- microscaling formats --------------------------------------------------------------------------

PACKED = "e2m1"  # two elements a byte, the first in the low half
FORMATS: Mapping[str, DType] = {
    "e4m3": float8e4nv,
    "e5m2": float8e5,
    "bf16": bfloat16,
    "fp16": float16,
    PACKED: uint8,
}
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_DECODED = np.concatenate((_E2M1, -_E2M1))
_SCALES = np.append(np.ldexp(np.float32(1), np.arange(-127, 128)), np.nan).astype(np.float32)


def _bind_dot_scaled(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: left, its scales, right, its scales, accumulator; those not there are left out.

    ``left_scaled`` and ``right_scaled`` say which scales there are.
    """
    formats, scaled, packs_k = attributes[0:2], attributes[2:4], attributes[4:6]
    (left, left_scale), rest = _take(types, scaled[0])
    (right, right_scale), rest = _take(rest, scaled[1])
    shapes = (
        _decoded_shape(op, types, left, formats[0], k_axis=-1, packs_k=packs_k[0]),
        _decoded_shape(op, types, right, formats[1], k_axis=-2, packs_k=packs_k[1]),
    )
    m, k, n = shapes[0][-2], shapes[0][-1], shapes[1][-1]
    if shapes[1][-2] != k or shapes[0][:-2] != shapes[1][:-2]:
        refuse(op, types, "(..., m, k) and (..., k, n)", "transpose or reshape an operand")
    _check_scale(op, types, left_scale, (*shapes[0][:-2], m), k)
    _check_scale(op, types, right_scale, (*shapes[1][:-2], n), k)
    result = block_type(dtype_of(attributes[6] or float32, op), (*shapes[0][:-2], m, n))
    if result.dtype is not float32:
        refuse(op, types, "out_dtype float32", "cast the result")
    if rest and rest != (result,):
        refuse(op, types, f"an accumulator {result}", "cast or reshape it")
    decode_left = _decoder(formats[0], k, k_axis=-1, packs_k=packs_k[0])
    decode_right = _decoder(formats[1], k, k_axis=-2, packs_k=packs_k[1])
    first, second = (2 if has else 1 for has in scaled)

    def run(*arrays: Array) -> Array:
        left, right = arrays[:first], arrays[first : first + second]
        total = np.matmul(decode_left(*left), decode_right(*right))
        added = arrays[first + second :]
        return np.add(total, added[0], out=total) if added else total

    return Bound(result, run, _charges(formats, scaled, shapes))


def _charges(
    formats: tuple[str, ...], scaled: tuple[bool, ...], shapes: tuple[tuple[int, ...], ...]
) -> tuple[Charge | GemmCharge, ...]:
    """The vector unit scales, the GEMM unit multiplies: it has no format below eight bits."""
    *batch, m, k = shapes[0]
    operands = zip(shapes, scaled, strict=True)
    scaling = (Charge("mul", prod(shape), float32) for shape, has_scale in operands if has_scale)
    dtypes = [FORMATS[name] if name != PACKED else float8e4nv for name in formats]
    slowest = max(dtypes, key=lambda dtype: dtype.primitive_bitwidth)  # both are taken as it
    return (*scaling, GemmCharge(m, shapes[1][-1], k, prod(batch), slowest))


def _take(types: Types, has_scale: bool) -> tuple[tuple[BlockType, BlockType | None], Types]:
    return ((types[0], types[1]), types[2:]) if has_scale else ((types[0], None), types[1:])


def _decoded_shape(
    op: str, types: Types, only: BlockType, name: str, *, k_axis: int, packs_k: bool
) -> tuple[int, ...]:
    if name not in FORMATS:
        expected = "one of " + ", ".join(FORMATS)
        raise KernelError(op, f"the format {name!r}", expected, "name one of them")
    dtype = FORMATS[name]
    bits = uint8 if dtype.primitive_bitwidth == 8 else uint16
    if only.dtype not in (dtype, bits) or only.rank < 2:
        refuse(op, types, f"a matrix of {dtype!r} or {bits!r} for {name}", "cast or load it so")
    shape = list(only.shape)
    if name == PACKED:
        shape[_packed_axis(k_axis, packs_k)] *= 2
    elif not packs_k:
        refuse(op, types, f"only {PACKED} packed along another axis than K", "drop k_pack=False")
    return tuple(shape)


def _packed_axis(k_axis: int, packs_k: bool) -> int:
    return k_axis if packs_k else -3 - k_axis  # the other of the last two


def _check_scale(
    op: str, types: Types, scale: BlockType | None, rows: tuple[int, ...], k: int
) -> None:
    if scale is None:
        return
    groups = scale.shape[-1] if scale.shape else 0
    if scale.dtype not in (uint8, int8) or scale.shape[:-1] != rows or k % max(groups, 1):
        expected = f"scales of uint8 shaped {rows} and groups that divide k = {k}"
        refuse(op, types, expected, "one scale for each row and group of K; those of B by columns")


def _decoder(name: str, k: int, *, k_axis: int, packs_k: bool) -> Function:
    dtype, packed_axis = FORMATS[name], _packed_axis(k_axis, packs_k)

    def decode(values: Array, scale: Array | None = None) -> Array:
        if name == PACKED:
            wide = _unpacked(values, packed_axis)
        else:
            wide = np.ascontiguousarray(values).view(dtype.storage).astype(np.float32)
        if scale is None:
            return wide
        factors = _SCALES[scale.view(np.uint8)].repeat(k // scale.shape[-1], axis=-1)
        return wide * (factors if k_axis == -1 else np.swapaxes(factors, -1, -2))

    return decode


def _unpacked(values: Array, axis: int) -> Array:
    codes = np.stack((values & np.uint8(15), values >> np.uint8(4)), axis=axis % values.ndim + 1)
    shape = list(values.shape)
    shape[axis] *= 2
    return _DECODED[codes.reshape(shape)]


_ATTRIBUTES = (
    *("left_format", "right_format", "left_scaled", "right_scaled"),
    *("left_k_pack", "right_k_pack", "out_dtype"),
)
DOTS: tuple[Meaning, ...] = (
    Meaning("dot", (2, 3), ("input_precision", "max_num_imprecise_acc", "out_dtype"), _bind_dot),
    Meaning("dot_scaled", (2, 3, 4, 5), _ATTRIBUTES, _bind_dot_scaled),
)
