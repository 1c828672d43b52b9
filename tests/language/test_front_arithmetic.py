"""Arithmetic on f32 that compiled code does itself gives NumPy's bits, whatever the bits mean."""

from math import prod
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.engine import EngineKind

OPERATORS = (add, sub, mul, truediv)
SPECIAL_BITS = (
    *(0x0000_0000, 0x8000_0000),  # zeros
    *(0x7F80_0000, 0xFF80_0000),  # infinities
    *(0x7FC0_1234, 0xFFC0_0001, 0x7F80_0001),  # NaNs, the last one signals
    *(0x0000_0001, 0x807F_FFFF, 0x7F7F_FFFF),  # the least, a denormal one, the greatest
)

extents = st.sampled_from((1, 2, 8, 64))
shapes = st.one_of(st.just(()), st.tuples(extents), st.tuples(extents, extents))


def block_at(pointer: Any, shape: tuple[int, ...]) -> Any:
    """A block of a shape; of none its sum, as Python's definition leaves it: a scalar of NumPy."""
    if not shape:
        return tl.sum(tl.load(pointer + tl.arange(0, 4)), 0)
    places = tl.arange(0, shape[-1])
    if len(shape) > 1:
        places = tl.arange(0, shape[0])[:, None] * shape[1] + places[None, :]
    return tl.load(pointer + places)


def combine(x_ptr: Any, y_ptr: Any, out_ptr: Any, x_shape: Any, y_shape: Any, shape: Any) -> None:
    x, y = block_at(x_ptr, x_shape), block_at(y_ptr, y_shape)
    size = prod(shape)
    for number, operator in enumerate(OPERATORS):
        result = tl.broadcast_to(operator(x, y) * 1.5, shape)
        places = number * size + tl.arange(0, size)
        tl.store(out_ptr + places, tl.reshape(result, (size,)))


def bits_of(seed: int, num_special: int) -> np.ndarray[Any, Any]:
    """Numbers, some of them special ones."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(64 * 64).astype(np.float32)
    places = random.integers(0, 128, num_special)  # where small blocks have them too
    values.view(np.uint32)[places] = random.choice(SPECIAL_BITS, num_special)
    return values


@needs_both_engines
@settings(max_examples=60)
@given(
    x_shape=shapes, y_shape=shapes, seed=st.integers(0, 99), num_special=st.sampled_from((0, 0, 20))
)
def test_results_have_the_bits_of_the_definition(
    x_shape: tuple[int, ...], y_shape: tuple[int, ...], seed: int, num_special: int
) -> None:
    try:
        shape = np.broadcast_shapes(x_shape, y_shape) or (1,)
    except ValueError:
        reject()
    seen = []
    for kind in EngineKind:
        bed = Bed(engine=kind)
        x, y = (bed.place(bits_of(each, num_special)) for each in (seed, seed + 100))
        out = bed.place(np.zeros(len(OPERATORS) * prod(shape), np.float32))
        result = bed.launch(combine, x, y, out, x_shape, y_shape, shape)
        seen.append((result, bed.read(out).tobytes()))
    assert seen[0] == seen[1]
