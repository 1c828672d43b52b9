"""Loads by computed offsets: compiled code and its definition in Python give the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kinds import needs_both_engines
from tests.language.bed import Array, Bed
from tilewright import language as tl
from tilewright.engine import EngineKind
from tilewright.errors import PageFaultError

PAGES, ROWS, COLUMNS = 5, 3, 8
SMALL_PAGES = "pe.mmu.page_bytes=4096"


def pages_kernel(
    x_ptr: Any, table_ptr: Any, out_ptr: Any, row: int, column: int, low: int, high: int,
    width: int, fill: tl.constexpr, pitch: tl.constexpr,
) -> None:  # fmt: skip
    page, i, j = tl.arange(0, PAGES), tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = i[None, :, None] * row + j[None, None, :] * column
    places = page[:, None, None] * (ROWS * COLUMNS) + i[None, :, None] * COLUMNS + j[None, None, :]
    mask = (page >= low)[:, None, None] & (page < high)[:, None, None] & (j < width)[None, None, :]
    block = tl.load(table_ptr + page)
    tile = tl.load(x_ptr + block[:, None, None] * pitch + inside, mask=mask, other=fill)
    tl.store(out_ptr + places, tile)
    tl.store(out_ptr + 512 + places, tl.load(x_ptr + block[:, None, None] * pitch + inside))


@pytest.fixture(scope="module")
def beds() -> list[Bed]:
    kinds = (EngineKind.REFERENCE, EngineKind.NATIVE)
    return [Bed(SMALL_PAGES, num_pes=2, engine=kind) for kind in kinds]


def run_pages(bed: Bed, values: Array, table: Array, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    arrays = [bed.place(each) for each in (values, table, np.zeros(1024, values.dtype))]
    result = bed.launch(pages_kernel, *arrays, *arguments)
    found = bed.read(arrays[-1])
    for array in arrays:
        bed.workspace.free(array)
    return found.tobytes(), result.latency_ps, result.counters


@needs_both_engines
@settings(max_examples=40)
@given(
    st.sampled_from([np.float32, np.int8, np.float16, np.int64]),
    st.sampled_from([np.int32, np.int64, np.int16, np.uint8, np.uint32]),
    st.lists(st.integers(0, 60), min_size=PAGES, max_size=PAGES),
    st.sampled_from([(COLUMNS, 1), (1, ROWS), (16, 1), (COLUMNS, 0), (0, 1)]),
    st.integers(0, PAGES),
    st.integers(0, PAGES),
    st.sampled_from([COLUMNS, 5, 0]),
    st.sampled_from([0, -7]),
    st.sampled_from([ROWS * COLUMNS, 40]),
)
def test_gathers_take_the_same_bytes_at_the_same_times(
    beds: list[Bed],
    dtype: Any,
    index: Any,
    table: list[int],
    strides: tuple[int, int],
    low: int,
    high: int,
    width: int,
    fill: int,
    pitch: int,
) -> None:
    values = (np.arange(2560) % 100).astype(dtype)
    arguments = (*strides, low, high, width, fill, pitch)
    reference, native = (run_pages(bed, values, np.array(table, index), arguments) for bed in beds)
    assert native == reference


def scalar_kernel(x_ptr: Any, table_ptr: Any, out_ptr: Any) -> None:
    count = tl.load(table_ptr)
    places = tl.arange(0, 16)
    for start in range(0, count, 4):
        some = tl.load(x_ptr + count + places, mask=places + start < count, other=-1)
        tl.store(out_ptr + places * (count - 12) + start, some)


@needs_both_engines
@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint32])
def test_a_loaded_number_beside_an_index_is_the_same_each_time(beds: list[Bed], index: Any) -> None:
    found = []
    for bed in beds:
        x, table, out = (
            bed.place(each)
            for each in (np.arange(64), np.array([13, 0], index), np.zeros(64, np.int64))
        )
        result = bed.launch(scalar_kernel, x, table, out)
        found.append((bed.read(out).tolist(), result.latency_ps, result.counters))
    assert found[0] == found[1]
    assert found[0][0][12:20] == [13, -1, -1, -1, -1, -1, -1, -1]


@needs_both_engines
@pytest.mark.parametrize("kind", [EngineKind.REFERENCE, EngineKind.NATIVE])
def test_an_offset_into_nowhere_is_a_fault_with_its_line(kind: EngineKind) -> None:
    bed = Bed(engine=kind)
    x, table = bed.place(np.zeros(64, np.float32)), bed.place(np.array([3, 2**40]))

    def kernel(x_ptr: Any, table_ptr: Any) -> None:
        tl.load(x_ptr + tl.load(table_ptr + tl.arange(0, 2)))

    with pytest.raises(PageFaultError, match=r"test_front_gather\.py:\d+ in kernel"):
        bed.launch(kernel, x, table)
