"""Products of matrices in microscaling formats: narrow elements, one power of two a group of K.

An operand is decoded to f32, multiplied by its scales and then treated as f32 by ``dot``'s rules:
products and sums in f32, rounded once. A scale is a byte e and stands for 2**(e - 127); 255 is NaN.
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
    int8,
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
from tilewright.language.meaning.elementwise import Function

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
    _check_result(op, types, result, rest)
    decode_left = _decoder(formats[0], k, k_axis=-1, packs_k=packs_k[0])
    decode_right = _decoder(formats[1], k, k_axis=-2, packs_k=packs_k[1])
    run = _run(decode_left, decode_right, *scaled)
    return Bound(result, run, _charges(formats, scaled, shapes))


def _run(decode_left: Function, decode_right: Function, *scaled: bool) -> Function:
    first, second = (2 if has else 1 for has in scaled)

    def run(*arrays: Array) -> Array:
        left, right = arrays[:first], arrays[first : first + second]
        total = np.matmul(decode_left(*left), decode_right(*right))
        added = arrays[first + second :]
        return np.add(total, added[0], out=total) if added else total

    return run


def _charges(
    formats: tuple[str, ...], scaled: tuple[bool, ...], shapes: tuple[tuple[int, ...], ...]
) -> tuple[Charge | GemmCharge, ...]:
    """The vector unit scales, the GEMM unit multiplies."""
    *batch, m, k = shapes[0]
    operands = zip(shapes, scaled, strict=True)
    scaling = (Charge("mul", prod(shape), float32) for shape, has_scale in operands if has_scale)
    return (*scaling, GemmCharge(m, shapes[1][-1], k, prod(batch), _slowest(formats)))


def _take(types: Types, has_scale: bool) -> tuple[tuple[BlockType, BlockType | None], Types]:
    if has_scale:
        return (types[0], types[1]), types[2:]
    return (types[0], None), types[1:]


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


def _check_result(op: str, types: Types, result: BlockType, rest: Types) -> None:
    if result.dtype is not float32:
        refuse(op, types, "out_dtype float32", "cast the result")
    if rest and rest != (result,):
        refuse(op, types, f"an accumulator {result}", "cast or reshape it")


def _slowest(formats: tuple[str, ...]) -> DType:
    """What the GEMM unit takes both operands as: it has no format below eight bits."""
    dtypes = [FORMATS[name] if name != PACKED else float8e4nv for name in formats]
    return max(dtypes, key=lambda dtype: dtype.primitive_bitwidth)


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
SCALED_DOTS: tuple[Meaning, ...] = (
    Meaning("dot_scaled", (2, 3, 4, 5), _ATTRIBUTES, _bind_dot_scaled),
)
