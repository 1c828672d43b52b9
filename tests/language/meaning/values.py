"""Blocks of values to try ops on: every extreme of a dtype, and random bits."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import DTYPES, DType, int1, int4
from tilewright.language.meaning import MEANINGS
from tilewright.language.meaning.bound import Array, Bound, Charge

__all__ = (
    "FLOATS",
    "INTEGERS",
    "block",
    "blocks_of",
    "bound_for",
    "charges_of",
    "evaluate",
    "extremes",
    "random_block",
    "result_of",
    "seeds",
)

FLOATS = tuple(dtype for dtype in DTYPES if dtype.is_floating())
INTEGERS = tuple(dtype for dtype in DTYPES if dtype.is_int())

seeds = st.integers(0, 2**32 - 1)


def evaluate(bound: Bound, *operands: Array) -> Any:
    """Run it with NumPy's warnings off: infinities and NaN are results like others."""
    with np.errstate(all="ignore"):
        return bound.run(*operands)


def extremes(dtype: DType) -> Array:
    """Zeros, ones, the ends of the range, subnormals, infinities, NaN: what the dtype has."""
    if dtype is int1:
        return np.array([False, True])
    if dtype.is_int():
        low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
        numbers = (0, 1, 2, 3, 5, low, low + 1, high - 1, high, *((-1, -2, -5) if low else ()))
        return np.array(numbers, dtype.compute).astype(dtype.storage)
    bits = np.dtype(f"uint{dtype.primitive_bitwidth}")
    mantissa = dtype.fp_mantissa_width
    top = (1 << dtype.primitive_bitwidth - 1) - 1
    magnitudes = (0, 1, (1 << mantissa) - 1, 1 << mantissa, top >> 1, top - (1 << mantissa), top)
    infinity = top ^ ((1 << mantissa) - 1)
    patterns = [*magnitudes, infinity, infinity - 1]
    signed = patterns + [pattern | (top + 1) for pattern in patterns]
    ordinary = np.array([1, -1, 2, -2.5, 0.1, 3, -7], np.float64).astype(dtype.storage)
    return np.concatenate((np.array(signed, bits).view(dtype.storage), ordinary))


def random_block(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Half random bits, so every exponent comes; half moderate numbers, so most meet."""
    count = int(np.prod(shape))
    if dtype is int1:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype is int4:
        return rng.integers(-8, 8, shape).astype(np.int8).astype(dtype.storage)
    raw = rng.bytes(count * dtype.storage.itemsize)
    bits = np.frombuffer(raw, dtype.storage, count).reshape(shape)
    moderate = rng.normal(0, 4, shape) if dtype.is_floating() else rng.integers(0, 100, shape)
    return np.where(rng.integers(0, 2, shape), moderate.astype(dtype.storage), bits)


def block(dtype: DType, rng: np.random.Generator, rows: int = 8) -> Array:
    """Extremes against everything: each column has one of them somewhere."""
    edge = extremes(dtype)
    return np.concatenate((rng.permutation(edge), random_block(dtype, (rows * 8,), rng)))


def blocks_of(dtype: DType, rng: np.random.Generator, count: int) -> tuple[Array, ...]:
    """Blocks that cross all pairs of extremes by broadcasting, for ops of ``count`` operands."""
    whole = block(dtype, rng)
    if count == 1:
        return (whole,)
    shapes = [(-1, 1), (1, -1), (1, 1, -1)]
    first = [whole.reshape(shapes[0]), rng.permutation(whole).reshape(shapes[1])]
    if count == 2:
        return tuple(first)
    few = rng.permutation(extremes(dtype))[:5]
    return (*(each[..., None] for each in first), few.reshape(shapes[2]))


def bound_for(op: str, *operands: Array, attributes: tuple[object, ...] = ()) -> Bound:
    from_storage = {dtype.storage: dtype for dtype in DTYPES}
    types = tuple(block_type(from_storage[each.dtype], each.shape) for each in operands)
    return MEANINGS[op].bind(types, attributes)


def charges_of(op: str, *operands: Array, attributes: tuple[object, ...] = ()) -> list[Charge]:
    """What the vector unit is charged; there is nothing for the GEMM unit."""
    charges = bound_for(op, *operands, attributes=attributes).charges
    found = [charge for charge in charges if isinstance(charge, Charge)]
    assert len(found) == len(charges)
    return found


def result_of(op: str, *operands: Array, attributes: tuple[object, ...] = ()) -> Array:
    """Run the op; what comes out has the dtype and shape that binding promised."""
    before = [each.copy() for each in operands]
    bound = bound_for(op, *operands, attributes=attributes)
    found = np.asarray(evaluate(bound, *operands))
    assert isinstance(bound.type, BlockType)
    assert found.dtype == bound.type.dtype.storage
    assert found.shape == bound.type.shape
    for each, copy in zip(operands, before, strict=True):
        assert each.tobytes() == copy.tobytes()
    return found
