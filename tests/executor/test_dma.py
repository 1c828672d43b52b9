from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.language.dtype import DType, int4, int8, int16, int32

ROWS, COLUMNS = 4, 8
SMALL_PAGES = "pe.mmu.page_bytes=4096"


@dataclass(frozen=True)
class Pattern:
    """Where the places of a 4 x 8 block lie in a memory of elements, and which of them count."""

    base: int
    strides: tuple[int, int]
    modulus: int  # of the element's number; wraps where the index is no more affine
    mask: str  # none, bound, computed
    bound: int

    def index(self, program: Any) -> Any:
        row, column = program.row, program.column
        affine = self.base + row * self.strides[0] + column * self.strides[1]
        return affine % self.modulus

    def mask_of(self, program: Any) -> Any:
        place = program.row * COLUMNS + program.column
        match self.mask:
            case "none":
                return None
            case "bound":
                return place < self.bound
        return (place * 5 + self.bound) % 7 < 4


@dataclass(frozen=True)
class Step:
    """memory[target] = memory[source] + 1, where masks let it."""

    source: Pattern
    target: Pattern


class Places:
    """Row and column numbers, in a kernel or in NumPy."""

    def __init__(self, arange: Any) -> None:
        self.row = arange(0, ROWS)[:, None]
        self.column = arange(0, COLUMNS)[None, :]


def patterns(size: int) -> st.SearchStrategy[Pattern]:
    @st.composite
    def pattern(draw: st.DrawFn) -> Pattern:
        strides = draw(st.tuples(st.integers(0, 40), st.integers(0, 5)))
        reach = strides[0] * (ROWS - 1) + strides[1] * (COLUMNS - 1)
        near_page_end = draw(st.booleans())
        base = size // 2 - 20 if near_page_end else draw(st.integers(0, 24))
        modulus = draw(st.sampled_from([size, max(1, base + reach // 2)]))
        mask = draw(st.sampled_from(["none", "bound", "computed"]))
        return Pattern(base, strides, modulus, mask, draw(st.integers(0, ROWS * COLUMNS)))

    return pattern()


def in_numpy(values: Array, steps: list[Step], bits: int) -> Array:
    memory, places = values.astype(np.int64), Places(np.arange)
    everywhere = np.ones((ROWS, COLUMNS), bool)
    for step in steps:
        mask = step.source.mask_of(places)
        mask = everywhere if mask is None else np.broadcast_to(mask, everywhere.shape)
        found = np.where(mask, memory[np.where(mask, step.source.index(places), 0)], 3) + 1
        found = (found + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        mask = step.target.mask_of(places)
        mask = everywhere if mask is None else np.broadcast_to(mask, everywhere.shape)
        index = np.broadcast_to(step.target.index(places), everywhere.shape)
        memory[index[mask]] = found[mask]  # the last of several values for one place stays
    return memory


def on_the_machine(values: Array, steps: list[Step]) -> Array:
    def kernel(ptr: Any) -> None:
        places = Places(tl.arange)
        for step in steps:
            mask = step.source.mask_of(places)
            other = None if mask is None else 3
            x = tl.load(ptr + step.source.index(places), mask=mask, other=other)
            tl.store(ptr + step.target.index(places), x + 1, mask=step.target.mask_of(places))

    bed = Bed(SMALL_PAGES, num_pes=3)
    memory = bed.place(values)
    bed.launch(kernel, memory)
    return bed.read(memory)


SIZES = {int32: 2048, int16: 4096, int8: 8192, int4: 16_384}  # each has two pages


@pytest.mark.parametrize("dtype", SIZES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_accesses_of_one_program_to_the_same_bytes_keep_their_order(
    dtype: DType, data: st.DataObject
) -> None:
    size = SIZES[dtype]
    step = st.builds(Step, patterns(size), patterns(size))
    steps = data.draw(st.lists(step, min_size=1, max_size=5))
    bits = dtype.primitive_bitwidth
    values = (np.arange(size) * 7 % 2**bits - 2 ** (bits - 1)).astype(dtype.storage)
    found = on_the_machine(values, steps)
    assert found.dtype == dtype.storage
    np.testing.assert_array_equal(found.astype(np.int64), in_numpy(values, steps, bits))


# -- elements of four bits ---------------------------------------------------------------------


def test_four_bit_elements_lie_two_a_byte() -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        n = tl.arange(0, 8)
        packed = tl.load(x_ptr.to(tl.pointer_type(tl.uint8)) + tl.arange(0, 4))
        tl.store(out_ptr + tl.arange(0, 4), packed)
        tl.store(x_ptr + n, tl.load(x_ptr + n) * 0 - 2)

    bed = Bed()
    x = bed.place(np.array([1, -1, 7, -8, 0, 2, 3, 4], int4.storage))
    out = bed.place(np.zeros(4, np.uint8))
    result = bed.launch(kernel, x, out)
    assert bed.read(out).tolist() == [0xF1, 0x87, 0x20, 0x43]
    assert bed.read(x).astype(np.int8).tolist() == [-2] * 8
    assert result.counters.loaded_bytes == 8
    assert result.counters.stored_bytes == 8


def test_a_strided_tile_of_four_bits_is_one_access() -> None:
    def kernel(x_ptr: Any, out_ptr: Any) -> None:
        places = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 32)[None, :]
        tl.store(out_ptr + places, tl.load(x_ptr + places))

    bed = Bed()
    values = (np.arange(1024) % 16 - 8).astype(int4.storage)
    x, out = bed.place(values), bed.place(np.zeros(1024, int4.storage))
    result = bed.launch(kernel, x, out)
    assert result.counters.loaded_bytes == 16 * 32 // 2
    found = bed.read(out).astype(np.int8).reshape(16, 64)
    expected = values.astype(np.int8).reshape(16, 64)
    np.testing.assert_array_equal(found[:, :32], expected[:, :32])
    assert not found[:, 32:].any()


def test_an_atomic_on_half_a_byte_is_refused() -> None:
    bed = Bed()
    x = bed.place(np.zeros(4, int4.storage))
    with pytest.raises(KernelError, match=r"an atomic on int4\[\], expected elements of whole byt"):
        bed.launch(lambda x_ptr: tl.atomic_add(x_ptr, 1), x)


def test_an_odd_half_is_no_address_of_a_byte() -> None:
    def kernel(x_ptr: Any) -> None:
        (x_ptr + 1).to(tl.pointer_type(tl.int8))

    bed = Bed()
    with pytest.raises(KernelError, match="addresses of int4 converted to int8"):
        bed.launch(kernel, bed.place(np.zeros(4, int4.storage)))


@example([1, 2, 3])
@given(st.lists(st.integers(-8, 7), min_size=1, max_size=9))
def test_what_is_placed_is_read_back(values: list[int]) -> None:
    bed = Bed()
    array = bed.place(np.array(values, int4.storage))
    assert bed.read(array).astype(np.int8).tolist() == values


# -- what is refused ---------------------------------------------------------------------------


def test_a_number_is_no_address() -> None:
    with pytest.raises(
        KernelError, match="found the integer address 64 without a dtype, expected pointers"
    ):
        Bed().launch(lambda: tl.load(64))


def test_an_access_that_a_mask_empties_reads_and_writes_nothing() -> None:
    def kernel(x_ptr: Any, out_ptr: Any, far: Any) -> None:
        n = tl.arange(0, 8)
        x = tl.load(x_ptr + far + n, mask=n < 0, other=2)  # no page there
        tl.store(out_ptr + n, x)
        tl.store(x_ptr + far + n, x, mask=n >= 8)

    bed = Bed()
    x, out = bed.place(np.zeros(8, np.int32)), bed.place(np.zeros(8, np.int32))
    result = bed.launch(kernel, x, out, 10**6)
    assert bed.read(out).tolist() == [2] * 8
    assert (result.counters.loads, result.counters.stores) == (0, 1)


def test_a_store_waits_for_the_loads_before_it_and_a_load_for_the_stores() -> None:
    def kernel(ptr: Any) -> None:
        n = tl.arange(0, 1024)
        for _ in range(5):
            tl.store(ptr + n, tl.load(ptr + n + 512) + 1)

    bed = Bed()
    memory = bed.place(np.arange(2048, dtype=np.int32))
    bed.launch(kernel, memory)
    expected = np.arange(2048)
    for _ in range(5):
        expected[:1024] = expected[512:1536] + 1
    np.testing.assert_array_equal(bed.read(memory), expected)
