from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.errors import KernelError
from tilewright.language.dtype import DTYPES, DType, float32
from tilewright.memory.address import MemoryKind, MemoryPlace

SMALL_PAGES = "pe.mmu.page_bytes=4096"
dtypes = st.sampled_from(DTYPES)


@settings(max_examples=50)
@given(dtypes, st.lists(st.integers(0, 40), max_size=3), st.integers(1, 4), st.randoms())
def test_what_is_placed_is_read_back(
    dtype: DType, shape: list[int], num_pes: int, random: Any
) -> None:
    values = np.array([random.randint(0, 1) for _ in range(int(np.prod(shape)))])
    values = values.astype(dtype.storage).reshape(shape)
    bed = Bed(SMALL_PAGES, num_pes=num_pes)
    found = bed.read(bed.place(values))
    assert found.dtype == dtype.storage
    assert found.shape == values.shape
    assert found.tobytes() == values.tobytes()


def test_a_reserved_array_is_zero_until_it_is_written() -> None:
    bed = Bed(SMALL_PAGES, num_pes=2)
    array = bed.workspace.reserve((3000,), float32, bed.pes, turn_pages=2)
    assert not bed.read(array).any()
    values = np.arange(3000, dtype=np.float32)
    bed.workspace.write(array, values)
    np.testing.assert_array_equal(bed.read(array), values)


@pytest.mark.parametrize("values", [np.zeros(4, np.float32), np.zeros(5, np.int32)])
def test_values_of_another_type_are_not_written(values: np.ndarray[Any, Any]) -> None:
    bed = Bed()
    array = bed.place(np.zeros(5, np.float32))
    with pytest.raises(KernelError, match="expected values of the array's type"):
        bed.workspace.write(array, values)


@pytest.mark.parametrize(("num_pes", "turn_pages"), [(0, 1), (1, 0)])
def test_pages_that_nobody_takes_are_refused(num_pes: int, turn_pages: int) -> None:
    bed = Bed(num_pes=num_pes)
    with pytest.raises(KernelError, match=f"{turn_pages} pages a turn over {num_pes} PEs"):
        bed.workspace.reserve((4,), float32, bed.pes, turn_pages)


def test_pages_are_dealt_to_the_slices_in_turn() -> None:
    def kernel(x_ptr: Any) -> None:
        for page in range(4):
            tl.load(x_ptr + page * 1024 + tl.arange(0, 1024))

    times = []
    for num_pes in (1, 4):
        bed = Bed(SMALL_PAGES, num_pes=num_pes)
        array = bed.place(np.zeros(4096, np.float32))
        times.append(bed.launch(kernel, array, grid=(1,)).latency_ps)
    assert times[0] != times[1]  # three of the pages are with other PEs


def test_all_that_arrays_took_is_given_back() -> None:
    bed = Bed(SMALL_PAGES, num_pes=3)
    first = bed.place(np.zeros(5000, np.float32))
    bed.workspace.free(first)
    again = bed.place(np.ones(5000, ml_dtypes.bfloat16))
    assert again.address == first.address
    bed.workspace.free(again)
    for pe in bed.pes:
        assert (
            bed.workspace._memory.allocator(MemoryPlace(MemoryKind.HBM, pe)).statistics.used_bytes
            == 0
        )


def test_a_descriptor_has_the_rank_of_its_array() -> None:
    bed = Bed()
    array = bed.place(np.zeros((4, 6), np.float32))
    described = bed.workspace.describe(array, (2, 3))
    assert (described.shape, described.strides) == ((4, 6), (6, 1))
    with pytest.raises(KernelError, match=r"the block \(2,\) for an array of shape \(4, 6\)"):
        bed.workspace.describe(array, (2,))
