"""Rows that an index chooses are read and written as NumPy does it, however they are told."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.language.bed import Bed
from tilewright import language as tl

Array = np.ndarray[Any, Any]
NUM_ROWS = 8


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of height x width elements, ``row_stride`` apart; inner rows ``stride`` apart."""

    height: int
    width: int
    stride: int
    row_stride: int
    index: tuple[int, ...]
    limit: int | None  # rows that a mask lets through: the first, or those from -limit on
    inner_limit: int | None  # columns that it lets through
    is_transposed: bool  # the index runs along the last axis of the block

    @property
    def size(self) -> int:
        return NUM_ROWS * self.row_stride


@st.composite
def tables(draw: st.DrawFn) -> Table:
    height, width = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 4, 8]))
    stride = width + draw(st.sampled_from([0, 0, 3]))
    row_stride = height * stride + draw(st.sampled_from([0, 0, 5]))
    count = draw(st.sampled_from([1, 2, 4, 8]))
    index = draw(st.lists(st.integers(0, NUM_ROWS - 1), min_size=count, max_size=count))
    limit = draw(st.none() | st.integers(-count, count))
    inner_limit = draw(st.none() | st.none() | st.integers(0, width))
    is_transposed = draw(st.booleans())
    return Table(height, width, stride, row_stride, tuple(index), limit, inner_limit, is_transposed)


def kernel(
    x_ptr: Any,
    index_ptr: Any,
    out_ptr: Any,
    count: int,
    height: int,
    width: int,
    stride: int,
    row_stride: int,
    limit: int | None,
    inner_limit: int | None,
    is_transposed: bool,
    writes: bool,
) -> None:
    order = tl.arange(0, count)
    row, column = tl.arange(0, height), tl.arange(0, width)
    if is_transposed:
        order = order[None, None, :]
        row, column = row[:, None, None], column[None, :, None]
    else:
        order = order[:, None, None]
        row, column = row[None, :, None], column[None, None, :]
    index = tl.load(index_ptr + order)
    mask = None
    if limit is not None:
        mask = order < limit if limit >= 0 else order >= -limit
    if inner_limit is not None:
        inner = column < inner_limit
        mask = inner if mask is None else mask & inner
    places = x_ptr + index * row_stride + row * stride + column
    dense = out_ptr + (order * height + row) * width + column
    if writes:
        value = tl.load(dense)
        if mask is None:
            tl.store(places, value)
        else:
            tl.store(places, value, mask=mask)
        return
    value = tl.load(places) if mask is None else tl.load(places, mask=mask, other=-1.0)
    tl.store(dense, value)


def in_numpy(table: Table) -> tuple[Array, Array]:
    """Flat places in the table and whether they count, as (index, row, column)."""
    index = np.array(table.index)[:, None, None]
    row, column = np.arange(table.height)[None, :, None], np.arange(table.width)[None, None, :]
    places = index * table.row_stride + row * table.stride + column
    counts = np.ones(places.shape, bool)
    if table.limit is not None:
        order = np.arange(len(table.index))[:, None, None]
        counts &= order < table.limit if table.limit >= 0 else order >= -table.limit
    if table.inner_limit is not None:
        counts &= column < table.inner_limit
    return places, counts


def on_the_machine(table: Table, values: Array, block: Array, *, writes: bool) -> Array:
    bed = Bed()
    x, out = bed.place(values), bed.place(block)
    index = bed.place(np.array(table.index, np.int32))
    bed.launch(
        kernel, x, index, out, len(table.index), table.height, table.width, table.stride,
        table.row_stride, table.limit, table.inner_limit, table.is_transposed, writes,
    )  # fmt: skip
    return bed.read(x if writes else out)


@given(tables())
@example(Table(4, 8, 8, 32, (3, 1, 6, 5), -2, None, False))  # whole rows behind a mask
@settings(max_examples=40)
def test_chosen_rows_are_read_as_numpy_reads_them(table: Table) -> None:
    values = np.arange(1, table.size + 1, dtype=np.float32)
    places, counts = in_numpy(table)
    found = on_the_machine(table, values, np.zeros(places.shape, np.float32), writes=False)
    np.testing.assert_array_equal(found, np.where(counts, values[places], np.float32(-1.0)))


@given(tables())
@example(Table(4, 8, 8, 32, (3, 1, 6, 5), -2, None, False))  # whole rows behind a mask
@settings(max_examples=40)
def test_chosen_rows_are_written_as_numpy_writes_them(table: Table) -> None:
    values = np.zeros(table.size, np.float32)
    places, counts = in_numpy(table)
    block = np.arange(1, places.size + 1, dtype=np.float32).reshape(places.shape)
    if len(set(table.index)) < len(table.index):
        block[:] = 1.0  # who comes last is nobody's business
    found = on_the_machine(table, values, block, writes=True)
    values[places[counts]] = block[counts]
    np.testing.assert_array_equal(found, values)
