"""Blocks that are made of numbers: constants, ranges, random draws.

Random numbers are those of Triton, bit for bit: Philox of four words, counter-based.
"""

from functools import partial
from typing import Any

import numpy as np

from tilewright.errors import KernelTypeError
from tilewright.language.block_type import block_type
from tilewright.language.dtype import DType, dtype_of, float32, uint32, uint64
from tilewright.language.meaning.arithmetic import high_half
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    Meaning,
    Types,
    broadcast_shape,
    check_count,
    need_integers,
    refuse,
)
from tilewright.language.meaning.convert import from_compute, to_storage
from tilewright.language.meaning.elementwise import Function
from tilewright.language.promote import Scalar

_FLOAT64 = np.dtype(np.float64)


def constant(value: Scalar, dtype: DType, where: str = "constant") -> Array:
    """``value`` as a scalar block of ``dtype``; an integer dtype takes what lies in its range.

    >>> from tilewright.language.dtype import float16
    >>> constant(7, float16)
    array(7., dtype=float16)
    """
    if dtype.is_floating():
        with np.errstate(all="ignore"):
            return np.asarray(from_compute(_FLOAT64, dtype)(np.array(float(value))))
    low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
    whole = 0 if value == 0 else value  # 0.0 is fine
    if isinstance(whole, float) or not low <= whole <= high:
        found = f"the number {value!r} for {dtype!r}"
        fix = "cast the block to a wider dtype first"
        raise KernelTypeError(where, found, f"an integer from {low} to {high}", fix)
    return np.asarray(np.array(whole, dtype.compute).astype(dtype.storage))


def _bind_full(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Of a number (``value``), or with an operand, a scalar block, of that."""
    shape, value, dtype = tuple(attributes[0]), attributes[1], dtype_of(attributes[2], op)
    result = block_type(dtype, shape)
    charges = (Charge(op, result.num_elements, dtype),) if shape else ()
    if types:
        if types[0].num_elements != 1:
            refuse(op, types, "a scalar to fill the block with", "use broadcast_to")
        cast = to_storage(types[0].dtype, dtype)
        return Bound(result, lambda a: np.broadcast_to(cast(a).reshape(()), shape), charges)
    block = np.full(shape, constant(value, dtype, op), dtype.storage)
    block.flags.writeable = False  # all runs share it
    return Bound(result, lambda: block, charges)


# -- random draws --------------------------------------------------------------------------------

Words = tuple[Array, ...]

# by the width of a word: what raises the two keys, and what the counters are multiplied by
_KEYS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
_FACTORS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_TO_UNIT = np.float32(4.6566127342e-10)  # the largest that keeps 2**31 - 1 times it below 1
_TO_UNIT_64 = np.float32(1.0842020432385337e-19)
_SMALLEST_UNIT = np.float32(1.0e-7)
_FULL_TURN = np.float32(6.283185307179586)


def _key(seed: Array) -> int:
    return int(np.asarray(seed).astype(np.int64).reshape(())) % 2**64


def _halves_32(left: Array, right: np.uint64) -> tuple[Array, Array]:
    product = left * right
    return product >> _HALF, product & _MASK


def _halves_64(left: Array, right: np.uint64) -> tuple[Array, Array]:
    return high_half(left, np.asarray(right)), left * right


def _rounds(counters: Words, keys: tuple[int, int], rounds: int, width: int) -> Words:
    """Counters are kept in uint64, whatever the width of a word."""
    halves = _halves_32 if width == 32 else _halves_64
    factors = tuple(np.uint64(factor) for factor in _FACTORS[width])
    (c0, c1, c2, c3), (k0, k1) = counters, keys
    for _ in range(rounds):
        (first_high, c3_next), (second_high, c1_next) = map(halves, (c0, c2), factors)
        c0, c2 = second_high ^ c1 ^ np.uint64(k0), first_high ^ c3 ^ np.uint64(k1)
        c1, c3 = c1_next, c3_next
        k0, k1 = ((key + step) % 2**width for key, step in zip((k0, k1), _KEYS[width], strict=True))
    return c0, c1, c2, c3


def _words(seed: Array, offset: Array, rounds: int) -> Words:
    """Four words for each offset: counter (offset low, offset high, 0, 0), key from the seed."""
    low = offset.astype(np.uint32).astype(np.uint64)
    zeros = np.zeros_like(low)
    high = offset.astype(np.int64).view(np.uint64) >> _HALF if offset.dtype.itemsize > 4 else zeros
    key = _key(seed)
    drawn = _rounds((low, high, zeros, zeros), (key % 2**32, key >> 32), rounds, 32)
    return tuple(word.astype(np.uint32) for word in drawn)


def _unit(word: Array, signed: Any = np.int32, to_unit: np.float32 = _TO_UNIT) -> Array:
    """A word as f32 from 0 up to 1: the sign bit folds the range, then it is scaled."""
    number: Array = np.asarray(word).view(signed)
    return np.where(number < 0, ~number, number).astype(np.float32) * to_unit


def _normal_pair(first: Array, second: Array) -> tuple[Array, Array]:
    """Box and Muller's transform of two uniform blocks."""
    radius = np.sqrt(np.float32(-2.0) * np.log(np.maximum(_SMALLEST_UNIT, first)))
    angle = _FULL_TURN * second
    return radius * np.cos(angle), radius * np.sin(angle)


def _normals(words: Words) -> Words:
    return _normal_pair(_unit(words[0]), _unit(words[1]))


_FROM_WORDS: dict[str, Function] = {
    "randint": lambda words: words[0],
    "randint4x": lambda words: words,
    "rand": lambda words: _unit(words[0]),
    "rand4x": lambda words: tuple(map(_unit, words)),
    "randn": lambda words: _normals(words)[0],
    "randn4x": lambda words: (*_normals(words[:2]), *_normals(words[2:])),
}


def _bind_random(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: seed (a scalar integer), offset (integers; one draw for each)."""
    (rounds,) = attributes
    check_count(op, "n_rounds", rounds)
    seed, offset = types
    if seed.num_elements != 1:
        refuse(op, types, "a scalar seed", "put what differs into the offset")
    need_integers(op, types, seed.dtype)
    need_integers(op, types, offset.dtype)
    finish = _FROM_WORDS[op]
    dtype = uint32 if op.startswith("randint") else float32
    only = block_type(dtype, offset.shape)
    result = (only,) * 4 if op.endswith("4x") else only
    run = lambda key, counters: finish(_words(key, counters, rounds))  # noqa: E731
    return Bound(result, run, _charges(op, offset.num_elements, rounds))


def _charges(op: str, elements: int, rounds: int) -> tuple[Charge, ...]:
    """A round is four products and four exclusive ors; keys are scalars."""
    words = tuple(Charge(each, elements, uint32, times=4 * rounds) for each in ("mul", "xor"))
    if op.startswith("randint"):
        return words
    used = 4 if op.endswith("4x") else 2 if op == "randn" else 1
    unit = _unit_charges(elements, used)
    if not op.startswith("randn"):
        return words + unit
    pairs = used // 2
    return words + unit + _normal_charges(elements, pairs=pairs, sines=pairs if used == 4 else 0)


def _unit_charges(elements: int, times: int) -> tuple[Charge, ...]:
    parts = ("lt", "not", "where", "cast", "mul")
    return tuple(Charge(name, elements, float32, times) for name in parts)


def _normal_charges(elements: int, *, pairs: int, sines: int) -> tuple[Charge, ...]:
    """Who needs one of two normal blocks leaves out a sine and a product."""
    counts = {"maximum": pairs, "log": pairs, "sqrt": pairs, "cos": pairs, "sin": sines}
    counts["mul"] = 3 * pairs + sines
    return tuple(Charge(name, elements, float32, count) for name, count in counts.items() if count)


def _bind_philox(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Operands: seed, then four counters of 32 bits, or of 64; what comes out is as wide."""
    (rounds,) = attributes
    check_count(op, "n_rounds", rounds)
    counters = types[1:]
    widths = {each.dtype.primitive_bitwidth for each in counters if each.dtype.is_int()}
    if types[0].num_elements != 1 or widths not in ({32}, {64}):
        expected = "a scalar seed and four counters of 32 or of 64 bits"
        refuse(op, types, expected, "cast the counters")
    need_integers(op, types, types[0].dtype)
    (width,) = widths
    word = np.dtype(f"uint{width}")
    result = block_type(uint32 if width == 32 else uint64, broadcast_shape(op, counters))

    def run(seed: Array, *given: Array) -> tuple[Array, ...]:
        wide = (np.asarray(each).view(word).astype(np.uint64) for each in given)
        c0, c1, c2, c3 = np.broadcast_arrays(*wide)
        key = _key(seed)
        keys = (key % 2**32, key >> 32) if width == 32 else (key, 0)
        return tuple(each.astype(word) for each in _rounds((c0, c1, c2, c3), keys, rounds, width))

    return Bound((result,) * 4, run, _charges("randint4x", result.num_elements, rounds))


def _bind_uniform(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Words of 32 or 64 bits as f32 from 0 up to 1."""
    (only,) = types
    if not only.dtype.is_int() or only.dtype.primitive_bitwidth not in (32, 64):
        refuse(op, types, "integers of 32 or 64 bits", "draw them with randint")
    is_narrow = only.dtype.primitive_bitwidth == 32
    run = _unit if is_narrow else partial(_unit, signed=np.int64, to_unit=_TO_UNIT_64)
    return Bound(only.with_dtype(float32), run, _unit_charges(only.num_elements, 1))


def _bind_normal_pair(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Two uniform blocks as two normal ones."""
    if any(each.dtype is not float32 for each in types):
        refuse(op, types, "two blocks of float32", "draw them with rand")
    result = block_type(float32, broadcast_shape(op, types))
    charges = _normal_charges(result.num_elements, pairs=1, sines=1)
    return Bound((result, result), _normal_pair, charges)


CREATIONS: tuple[Meaning, ...] = (
    Meaning("full", (0, 1), ("shape", "value", "dtype"), _bind_full),
    *(Meaning(name, (2,), ("n_rounds",), _bind_random) for name in _FROM_WORDS),
    Meaning("philox", (5,), ("n_rounds",), _bind_philox),
    Meaning("uint_to_uniform_float", (1,), (), _bind_uniform),
    Meaning("pair_uniform_to_normal", (2,), (), _bind_normal_pair),
)
