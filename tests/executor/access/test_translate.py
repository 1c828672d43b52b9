from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.dma import ChannelDeal
from tilewright.device.mmu import Mmu, Walk
from tilewright.executor.access.layout import layout_of
from tilewright.executor.access.order import Span
from tilewright.executor.access.translate import Translator
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
