"""Random numbers as Triton draws them: Philox 4x32, counter-based, bit for bit."""

from typing import Any

import numpy as np

from tilewright.language.block_type import BlockType, block_type
from tilewright.language.dtype import float32, uint32
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    Meaning,
    check_count,
    refuse,
)
from tilewright.language.meaning.elementwise import Function, need_integers

__all__ = ("RANDOM",)

Types = tuple[BlockType, ...]
Words = tuple[Array, Array, Array, Array]

_KEYS = (0x9E3779B9, 0xBB67AE85)
_FACTORS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_TO_UNIT = np.float32(4.6566127342e-10)  # the largest that keeps 2**31 - 1 times it below 1
_SMALLEST_UNIT = np.float32(1.0e-7)
_FULL_TURN = np.float32(6.283185307179586)


def _philox(seed: Array, offset: Array, rounds: int) -> Words:
    """Four words for each offset: counter (offset low, offset high, 0, 0), key from the seed."""
    counter = offset.astype(np.int64).view(np.uint64) if offset.dtype.itemsize > 4 else None
    c0 = offset.astype(np.uint32).astype(np.uint64)
    c1 = np.zeros_like(c0) if counter is None else counter >> _HALF
    c2 = c3 = np.zeros_like(c0)
    key = int(np.asarray(seed).astype(np.int64).reshape(())) % 2**64
    k0, k1 = key % 2**32, key >> 32
    for _ in range(rounds):
        first, second = c0 * _FACTORS[0], c2 * _FACTORS[1]
        c0 = (second >> _HALF) ^ c1 ^ np.uint64(k0)
        c2 = (first >> _HALF) ^ c3 ^ np.uint64(k1)
        c1, c3 = second & _MASK, first & _MASK
        k0, k1 = (k0 + _KEYS[0]) % 2**32, (k1 + _KEYS[1]) % 2**32
    return tuple(word.astype(np.uint32) for word in (c0, c1, c2, c3))  # type: ignore[return-value]


def _unit(word: Array) -> Array:
    """A word as f32 from 0 up to 1: the sign bit folds the range, then it is scaled."""
    signed = np.asarray(word).view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * _TO_UNIT


def _normal_pair(first: Array, second: Array) -> tuple[Array, Array]:
    """Box and Muller's transform of two uniform blocks."""
    radius = np.sqrt(np.float32(-2.0) * np.log(np.maximum(_SMALLEST_UNIT, first)))
    angle = _FULL_TURN * second
    return radius * np.cos(angle), radius * np.sin(angle)


def _rand4x(words: Words) -> Words:
    a, b, c, d = (_unit(word) for word in words)
    return a, b, c, d


def _randn4x(words: Words) -> Words:
    a, b, c, d = _rand4x(words)
    return (*_normal_pair(a, b), *_normal_pair(c, d))


_FROM_WORDS: dict[str, Function] = {
    "randint": lambda words: words[0],
    "randint4x": lambda words: words,
    "rand": lambda words: _unit(words[0]),
    "rand4x": _rand4x,
    "randn": lambda words: _normal_pair(_unit(words[0]), _unit(words[1]))[0],
    "randn4x": _randn4x,
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
    run = lambda key, counters: finish(_philox(key, counters, rounds))  # noqa: E731
    return Bound(result, run, _charges(op, offset.num_elements, rounds))


def _charges(op: str, elements: int, rounds: int) -> tuple[Charge, ...]:
    """A round is four products and four exclusive ors; keys are scalars."""
    words = (
        Charge("mul", elements, uint32, times=4 * rounds),
        Charge("xor", elements, uint32, times=4 * rounds),
    )
    if op.startswith("randint"):
        return words
    used = 4 if op.endswith("4x") else 2 if op == "randn" else 1
    unit = tuple(
        Charge(name, elements, float32, times=used)
        for name in ("lt", "not", "where", "cast", "mul")
    )
    if op.startswith("rand4x") or op == "rand":
        return words + unit
    pairs = used // 2
    normal = tuple(
        Charge(name, elements, float32, times=pairs * count)
        for name, count in (("maximum", 1), ("log", 1), ("sqrt", 1), ("cos", 1), ("mul", 3))
    )
    sine = (Charge("sin", elements, float32, times=pairs),) if used == 4 else ()
    return words + unit + normal + sine


RANDOM: tuple[Meaning, ...] = tuple(
    Meaning(name, (2,), ("n_rounds",), _bind_random) for name in _FROM_WORDS
)
