"""Rows that an index chooses are read and written as NumPy does it, however they are told."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.language.bed import Bed
from tilewright import language as tl
from tilewright.device.dma import ChannelDeal
from tilewright.device.mmu import Mmu, Walk
from tilewright.executor.address import Translator
from tilewright.executor.layout import layout_of
from tilewright.executor.order import Span
from tilewright.language.affine import Affine, Box
from tilewright.machine.spec import MmuSpec
from tilewright.memory.address import PhysicalByte, RangeMapping, VirtualByte, VirtualRange
from tilewright.memory.page_table import PageTable

PAGE = 64
NUM_PAGES = 8
MEMORY_PAGES = 3  # physical pages of one memory
FIRST = 16  # the first virtual page


class Stream:
    """Whose walks nobody knows the end of."""

    def has_walked(self, command: int) -> bool:
        del command
        return False


BY = Walk(Stream(), 5)


@st.composite
def translators(draw: st.DrawFn) -> tuple[Translator, list[int]]:
    """With the physical page of each virtual one; some ranges are mapped as one."""
    pages = draw(st.permutations(range(NUM_PAGES)))
    table = PageTable("test", PAGE)
    start = 0
    while start < NUM_PAGES:
        end = start + 1
        joins = draw(st.booleans())
        while joins and end < NUM_PAGES and pages[end] == pages[end - 1] + 1:
            end += 1
        virtual = VirtualRange(VirtualByte((FIRST + start) * PAGE), (end - start) * PAGE)
        table.map([RangeMapping(virtual, PhysicalByte(pages[start] * PAGE))])
        start = end
    spec = MmuSpec(page_bytes=PAGE, tlb_entries=4)

    def locate(physical: int) -> tuple[int, int, int]:
        memory, address = divmod(physical, MEMORY_PAGES * PAGE)
        return memory, address, MEMORY_PAGES * PAGE - address

    return Translator(Mmu("pe.mmu", spec, table), locate, ChannelDeal(1, 1)), list(pages)


def home(address: int, pages: list[int]) -> tuple[int, int]:
    """The memory and the address there of one virtual byte."""
    page, inside = divmod(address - FIRST * PAGE, PAGE)
    return divmod(pages[page] * PAGE + inside, MEMORY_PAGES * PAGE)


def bytes_of_pieces(pieces: Any) -> dict[tuple[int, int], tuple[int, int]]:
    """For each segment and byte in it: the memory and the address there, each told once."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for piece in pieces:
        for segment in range(piece.num_segments):
            for byte in range(piece.num_bytes):
                key = (piece.first_segment + segment, piece.skip_bytes + byte)
                assert key not in found
                address = piece.address + segment * piece.stride_bytes + byte
                found[key] = (piece.memory, address)
    return found


@st.composite
def spans(draw: st.DrawFn) -> Span:
    size = draw(st.integers(1, 150))
    stride = size + draw(st.integers(0, 90))
    room = NUM_PAGES * PAGE
    most = (room - size) // stride + 1
    count = draw(st.integers(1, most))
    reach = (count - 1) * stride + size
    address = FIRST * PAGE + draw(st.integers(0, room - reach))
    return Span(address, count, size, stride)


@given(translators(), st.lists(spans(), min_size=1, max_size=3))
def test_pieces_have_every_byte_of_every_segment_once(
    translator_and_pages: tuple[Translator, list[int]], accesses: list[Span]
) -> None:
    translator, pages = translator_and_pages
    expected = {}
    first = 0
    for span in accesses:
        for segment in range(span.num_segments):
            for byte in range(span.segment_bytes):
                address = span.address + segment * span.stride_bytes + byte
                expected[first + segment, byte] = home(address, pages)
        first += span.num_segments
    assert bytes_of_pieces(translator.pieces(accesses, BY)) == expected


@given(translators(), spans())
def test_a_piece_lies_in_one_memory_and_on_pages_that_follow_each_other(
    translator_and_pages: tuple[Translator, list[int]], span: Span
) -> None:
    translator, _ = translator_and_pages
    for piece in translator.pieces([span], BY):
        reach = (piece.num_segments - 1) * piece.stride_bytes + piece.num_bytes
        assert piece.address >= 0
        assert piece.address + reach <= MEMORY_PAGES * PAGE * NUM_PAGES
        assert piece.num_segments >= 1
        assert piece.num_bytes >= 1


@given(translators())
def test_a_page_that_was_walked_is_known_the_next_time(
    translator_and_pages: tuple[Translator, list[int]],
) -> None:
    translator, _ = translator_and_pages
    span = Span(FIRST * PAGE, 1, 8, 8)
    (first,) = translator.pieces([span], BY)
    (second,) = translator.pieces([span], Walk(BY.walker, BY.command + 1))
    assert (first.walk, second.walk) == (BY.command, BY.command)
    assert translator.mmu.state.walks == 1


def test_spans_are_the_rows_of_a_layout() -> None:
    table = PageTable("test", PAGE)
    mmu = Mmu("pe.mmu", MmuSpec(page_bytes=PAGE), table)
    translator = Translator(mmu, lambda _: (0, 0, PAGE), ChannelDeal(1, 1))
    affine = Affine(1000, (400, 100, 2), (2, 3, 4))
    layout = layout_of(affine, Box.whole(affine.shape), 2)
    expected = [Span(1000, 3, 8, 100), Span(1400, 3, 8, 100)]
    assert translator.spans(1000, layout) == expected
    addresses = affine.array(np.dtype(np.int64))
    starts = [span.address + i * span.stride_bytes for span in expected for i in range(3)]
    assert addresses[..., 0].reshape(-1).tolist() == starts


def pieces_with(*ranges: tuple[int, int, int]) -> list[Any]:
    """Of eight segments of 4 bytes, 12 bytes apart, if (first, bytes, physical) are mapped."""
    table = PageTable("test", PAGE)
    table.map(
        RangeMapping(VirtualRange(VirtualByte(first), size), PhysicalByte(physical))
        for first, size, physical in ranges
    )
    mmu = Mmu("pe.mmu", MmuSpec(page_bytes=PAGE), table)
    translator = Translator(mmu, lambda physical: (0, physical, 10**6), ChannelDeal(1, 1))
    return translator.pieces([Span(0, 8, 4, 12)], BY)


def test_a_gap_between_segments_changes_no_piece() -> None:
    whole = pieces_with((0, 88, 640))
    assert len(whole) == 1
    assert pieces_with(*[(12 * place, 4, 640 + 12 * place) for place in range(8)]) == whole


def test_segments_that_lie_elsewhere_behind_a_gap_are_a_piece_of_their_own() -> None:
    near, far = pieces_with((0, 40, 640), (48, 40, 1280))
    assert (near.address, near.num_segments, far.address, far.num_segments) == (640, 4, 1280, 4)


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
