"""Page tables against a dictionary of pages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import PageFaultError, RegistryError, UnitError
from tilewright.memory import (
    PageMapping,
    PageRange,
    PageTable,
    PhysicalPage,
    VirtualByte,
    VirtualPage,
)
from tilewright.memory.page_table import Shared

PAGE = 16
PE = "sip0.cube3.pe5"


def pages(first: int, num_pages: int = 1) -> PageRange:
    return PageRange(VirtualPage(first), num_pages)


def mapping(first: int, physical: int, num_pages: int = 1) -> PageMapping:
    return PageMapping(pages(first, num_pages), PhysicalPage(physical))


def table_of(*mappings: PageMapping) -> PageTable:
    table = PageTable(f"{PE}.mmu", PAGE)
    table.map(mappings)
    return table


def is_free(model: dict[int, int], wanted: PageRange) -> bool:
    return not any(page in model for page in range(wanted.first, wanted.end))


ranges = st.builds(pages, st.integers(0, 30), st.integers(1, 5))
batches = st.lists(st.builds(PageMapping, ranges, st.integers(0, 40).map(PhysicalPage)), max_size=3)


@given(batches=st.lists(batches, max_size=6), data=st.data())
def test_a_table_knows_what_a_dictionary_of_pages_knows(
    batches: list[list[PageMapping]], data: st.DataObject
) -> None:
    table = PageTable("mmu", PAGE)
    model: dict[int, int] = {}
    for batch in batches:
        after = dict(model)
        is_legal = True
        for one in batch:
            is_legal = is_legal and is_free(after, one.pages)
            for place in range(one.pages.num_pages):
                after[one.pages.first + place] = one.physical_page + place
        if is_legal:
            table.map(batch)
            model = after
        else:
            with pytest.raises(RegistryError):
                table.map(batch)
        takes_one_out: bool = data.draw(st.booleans())
        if table.mappings and takes_one_out:
            gone = data.draw(st.sampled_from(table.mappings)).pages
            table.unmap([gone])
            for page in range(gone.first, gone.end):
                del model[page]
        assert {page: table.get(VirtualPage(page)) for page in range(40)} == {
            page: model.get(page) for page in range(40)
        }
        assert len(table) == len(model)


@st.composite
def crowded(draw: st.DrawFn) -> list[PageMapping]:
    """Ranges side by side, most of them without a gap, some in neighbouring physical pages."""
    found: list[PageMapping] = []
    first, physical = 1, 10
    for _ in range(draw(st.integers(1, 6))):
        num_pages = draw(st.integers(1, 2))
        found.append(mapping(first, physical, num_pages))
        first += num_pages + draw(st.sampled_from([0, 0, 0, 1]))
        physical += draw(st.sampled_from([num_pages, num_pages, 5, -3]))
    return found


@given(batches=st.lists(batches, max_size=6), own=batches, data=st.data())
def test_tables_that_share_changes_know_what_tables_on_their_own_know(
    batches: list[list[PageMapping]], own: list[PageMapping], data: st.DataObject
) -> None:
    together = [PageTable(f"mmu {number}", PAGE) for number in range(3)]
    alone = [PageTable(f"mmu {number}", PAGE) for number in range(3)]
    batches.insert(data.draw(st.integers(0, len(batches))), own)
    for batch in batches:
        shared = Shared()
        members = range(1) if batch is own else range(3)  # one table differs from then on
        for number in members:
            outcomes = [
                change_of(together[number], batch, shared),
                change_of(alone[number], batch, None),
            ]
            assert outcomes[0] == outcomes[1]
    for one, other in zip(together, alone, strict=True):
        assert one.mappings == other.mappings


def change_of(table: PageTable, batch: list[PageMapping], shared: Shared | None) -> str:
    try:
        table.map(batch, shared)
    except RegistryError as error:
        return str(error)
    return "done"


@given(batch=crowded(), address=st.integers(0, 8 * PAGE), num_bytes=st.integers(1, 5 * PAGE))
def test_runs_are_the_bytes_in_order_and_no_two_could_be_one(
    batch: list[PageMapping], address: int, num_bytes: int
) -> None:
    table = table_of(*batch)
    model = {
        one.pages.first + place: one.physical_page + place
        for one in batch
        for place in range(one.pages.num_pages)
    }
    wanted = range(address, address + num_bytes)
    missing = [byte for byte in wanted if byte // PAGE not in model]
    for _ in range(2):  # the second time from what it remembers
        if missing:
            with pytest.raises(PageFaultError) as caught:
                table.runs(VirtualByte(address), num_bytes, PE)
            assert (caught.value.address, caught.value.pe) == (missing[0], PE)
            continue
        runs = table.runs(VirtualByte(address), num_bytes, PE)
        expected = [model[byte // PAGE] * PAGE + byte % PAGE for byte in wanted]
        assert [start + place for start, size in runs for place in range(size)] == expected
        assert all(before + size != after for (before, size), (after, _) in pairwise(runs))


def test_a_page_fault_says_who_asked_for_what() -> None:
    table = table_of(mapping(2, 7, 3))
    with pytest.raises(PageFaultError) as caught:
        table.runs(VirtualByte(4 * PAGE + 8), 2 * PAGE, PE)
    assert str(caught.value) == (
        f"{PE}: found an access to 32 bytes at 0x48, of which virtual page 5 (0x50..0x5f) is not "
        "mapped, expected mapped pages; map it before the access, or correct the address"
    )
    located = caught.value.located(kernel="add", line="add.py line 7")
    assert located.where == f"add.py line 7, kernel 'add' on {PE}, address 0x50"


def test_a_fault_of_nobody_in_particular_names_the_table() -> None:
    with pytest.raises(PageFaultError, match=f"^{PE}.mmu: found an access to 1 bytes at 0x0"):
        table_of().runs(VirtualByte(0), 1)


def test_an_address_below_all_pages_is_a_fault() -> None:
    for table in (table_of(), table_of(mapping(0, 7, 3))):
        with pytest.raises(PageFaultError, match="an access to 5 bytes at -0x5"):
            table.runs(VirtualByte(-5), 5)


def test_a_page_that_is_mapped_is_not_mapped_again() -> None:
    table = table_of(mapping(2, 7, 3))
    with pytest.raises(RegistryError) as caught:
        table.map([mapping(9, 1), mapping(4, 20, 2)])
    assert str(caught.value) == (
        f"{PE}.mmu: found a map of virtual pages 4..5 while virtual pages 2..4 are mapped, "
        "expected pages that are free; unmap them first"
    )
    assert repr(table) == f"<PageTable '{PE}.mmu', 3 pages in 1 ranges>"


@pytest.mark.parametrize(
    "wrong", [[pages(2, 2)], [pages(3, 2)], [pages(9)], [pages(2, 3), pages(2, 3)]]
)
def test_what_was_not_mapped_as_one_range_is_not_unmapped(wrong: list[PageRange]) -> None:
    table = table_of(mapping(2, 7, 3))
    with pytest.raises(RegistryError, match="expected a range as it was mapped; unmap what was"):
        table.unmap(wrong)
    assert len(table) == 3


def test_an_unmapped_range_is_forgotten_at_once() -> None:
    table = table_of(mapping(2, 7, 3))
    assert table.runs(VirtualByte(2 * PAGE), 1) == [(7 * PAGE, 1)]
    table.unmap([pages(2, 3)])
    with pytest.raises(PageFaultError):
        table.runs(VirtualByte(2 * PAGE), 1)
    assert table.get(VirtualPage(2)) is None


@pytest.mark.parametrize("wrong", [mapping(2, 7, 0), mapping(-1, 7), mapping(2, -7)])
def test_pages_that_cannot_be_are_refused(wrong: PageMapping) -> None:
    with pytest.raises(RegistryError, match="pages that there are; map at least one page"):
        table_of(wrong)


@pytest.mark.parametrize("num_bytes", [0, -3])
def test_an_access_to_nothing_is_refused(num_bytes: int) -> None:
    table = table_of(mapping(0, 7, 3))
    for _ in range(2):
        with pytest.raises(UnitError, match=f"{PE}: found an access to {num_bytes} bytes at 0x4"):
            table.runs(VirtualByte(4), num_bytes, PE)
        table.runs(VirtualByte(4), 4)
