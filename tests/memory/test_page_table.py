"""Page tables against a dictionary of bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import AddressError, PageFaultError, RegistryError, UnitError
from tilewright.memory import (
    PageTable,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.page_table import GAP, Shared

PAGE = 16
PE = "sip0.cube3.pe5"


def virtual(first: int, num_bytes: int = 1) -> VirtualRange:
    return VirtualRange(VirtualByte(first), num_bytes)


def mapping(first: int, physical: int, num_bytes: int = 1) -> RangeMapping:
    return RangeMapping(virtual(first, num_bytes), PhysicalByte(physical))


def table_of(*mappings: RangeMapping) -> PageTable:
    table = PageTable(f"{PE}.mmu", PAGE)
    table.map(mappings)
    return table


def bytes_of(mappings: list[RangeMapping]) -> dict[int, int]:
    """The physical byte of every virtual one."""
    return {
        virtual.first + place: several.physical + number * several.physical_step + place
        for several in mappings
        for number, virtual in enumerate(several.virtual.single())
        for place in range(virtual.num_bytes)
    }


def seen(table: PageTable, address: int) -> int | None:
    try:
        ((physical, _),) = table.runs(VirtualByte(address), 1)
    except AddressError:
        return None
    return physical


@st.composite
def repeated(draw: st.DrawFn) -> list[RangeMapping]:
    """Some that fit together, as the shards of an interleaved tensor do; of pages at times."""
    unit = draw(st.sampled_from((1, 1, PAGE // 4)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    step, times = sum(sizes) + draw(st.integers(0, 3)), draw(st.integers(2, 4))
    first, found = draw(st.integers(0, 40)), []
    for size in sizes:
        repeats = VirtualRange(VirtualByte(first), size * unit, times, step * unit)
        physical = PhysicalByte(draw(st.integers(0, 90)))
        found.append(RangeMapping(repeats, physical, draw(st.integers(0, 30))))
        first += size * unit
    return found


ranges = st.builds(virtual, st.integers(0, 60), st.integers(1, 30))
singles = st.lists(
    st.builds(RangeMapping, ranges, st.integers(0, 90).map(PhysicalByte)), max_size=3
)
batches = singles | repeated() | st.builds(list.__add__, singles, repeated())


@given(batches=st.lists(batches, max_size=6), data=st.data())
def test_a_table_knows_what_a_dictionary_of_bytes_knows(
    batches: list[list[RangeMapping]], data: st.DataObject
) -> None:
    table = PageTable("mmu", PAGE)
    model: dict[int, int] = {}
    mapped: list[RangeMapping] = []
    for batch in batches:
        wanted = sum(one.virtual.num_bytes * one.virtual.times for one in batch)
        after = model | bytes_of(batch)
        if len(after) == len(model) + wanted:
            table.map(batch)
            model = after
            mapped += batch
        else:
            with pytest.raises(RegistryError):
                table.map(batch)
        takes_one_out: bool = data.draw(st.booleans())
        if mapped and takes_one_out:
            gone = mapped.pop(data.draw(st.integers(0, len(mapped) - 1)))
            table.unmap([gone.virtual])
            for byte in bytes_of([gone]):
                del model[byte]
            with pytest.raises(RegistryError):
                table.unmap([gone.virtual])
        assert bytes_of(list(table.mappings)) == model
        assert {byte: seen(table, byte) for byte in range(300)} == {
            byte: model.get(byte) for byte in range(300)
        }
        pages = {byte // PAGE for byte in model}
        assert len(table) == len(pages)
        assert {page for page in range(20) if table.has_page(VirtualPage(page))} == pages


@st.composite
def crowded(draw: st.DrawFn) -> list[RangeMapping]:
    """Ranges side by side, most of them without a gap, some in neighbouring physical bytes."""
    found: list[RangeMapping] = []
    first, physical = draw(st.integers(1, 20)), 200
    for _ in range(draw(st.integers(1, 6))):
        num_bytes = draw(st.integers(1, 2 * PAGE))
        found.append(mapping(first, physical, num_bytes))
        gap = draw(st.sampled_from([0, 0, 0, 5, PAGE]))
        first += num_bytes + gap
        physical += draw(st.sampled_from([num_bytes, num_bytes + gap, 50, -30]))
    return found


@given(batches=st.lists(batches, max_size=6), own=batches, data=st.data())
def test_tables_that_share_changes_know_what_tables_on_their_own_know(
    batches: list[list[RangeMapping]], own: list[RangeMapping], data: st.DataObject
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


def change_of(table: PageTable, batch: list[RangeMapping], shared: Shared | None) -> str:
    try:
        table.map(batch, shared)
    except RegistryError as error:
        return str(error)
    return "done"


@given(batch=crowded(), address=st.integers(0, 8 * PAGE), num_bytes=st.integers(1, 5 * PAGE))
def test_runs_are_the_bytes_in_order_and_no_two_could_be_one(
    batch: list[RangeMapping], address: int, num_bytes: int
) -> None:
    table, model = table_of(*batch), bytes_of(batch)
    wanted = range(address, address + num_bytes)
    missing = [byte for byte in wanted if byte not in model]
    for _ in range(2):  # the second time from what it remembers
        if missing:
            with pytest.raises(AddressError) as caught:
                table.runs(VirtualByte(address), num_bytes, PE)
            assert (caught.value.address, caught.value.pe) == (missing[0], PE)
            has_page = any(byte // PAGE == missing[0] // PAGE for byte in model)
            assert isinstance(caught.value, PageFaultError) is not has_page
            continue
        runs = table.runs(VirtualByte(address), num_bytes, PE)
        assert [start + place for start, size in runs for place in range(size)] == [
            model[byte] for byte in wanted
        ]
        assert all(before + size != after for (before, size), (after, _) in pairwise(runs))


@given(
    batch=crowded(),
    address=st.integers(0, 6 * PAGE),
    size=st.integers(1, 6),
    gap=st.integers(0, 10),
    count=st.integers(2, 6),
)
def test_segments_need_the_bytes_of_segments_and_none_between_them(
    batch: list[RangeMapping], address: int, size: int, gap: int, count: int
) -> None:
    table, model = table_of(*batch), bytes_of(batch)
    segments = range(address, address + count * (size + gap), size + gap)
    wanted = [start + place for start in segments for place in range(size)]
    if any(byte not in model for byte in wanted):
        with pytest.raises(AddressError) as caught:
            table.strided_runs(segments, size, PE)
        assert caught.value.address == next(byte for byte in wanted if byte not in model)
        return
    at = address
    found: dict[int, int] = {}
    runs = table.strided_runs(segments, size, PE)
    for physical, length in runs:
        if physical != GAP:
            found |= {at + place: physical + place for place in range(length)}
        at += length
    assert at == segments[-1] + size
    assert {byte: found[byte] for byte in wanted} == {byte: model[byte] for byte in wanted}


def test_a_page_fault_says_who_asked_for_what() -> None:
    table = table_of(mapping(2 * PAGE, 7 * PAGE, 3 * PAGE))
    with pytest.raises(PageFaultError) as caught:
        table.runs(VirtualByte(4 * PAGE + 8), 2 * PAGE, PE)
    assert str(caught.value) == (
        f"{PE}: found an access to 32 bytes at 0x48, of which virtual page 5 (0x50..0x5f) is not "
        "mapped, expected mapped pages; map it before the access, or correct the address"
    )
    located = caught.value.located(kernel="add", line="add.py line 7")
    assert located.where == f"add.py line 7, kernel 'add' on {PE}, address 0x50"


def test_a_byte_beside_a_range_is_no_page_fault_and_an_error() -> None:
    table = table_of(mapping(2 * PAGE, 7 * PAGE, PAGE + 3))
    with pytest.raises(AddressError) as caught:
        table.runs(VirtualByte(3 * PAGE), 4, PE)
    assert not isinstance(caught.value, PageFaultError)
    assert str(caught.value) == (
        f"{PE}: found an access to 4 bytes at 0x30, of which 0x33 is nothing that the PE has in "
        "virtual page 3 (0x30..0x3f), expected bytes that are mapped; correct the address"
    )


def test_ranges_side_by_side_in_one_page_may_lie_anywhere() -> None:
    table = table_of(mapping(3, 100, 4), mapping(7, 50, 2), mapping(9, 104, 1))
    assert table.runs(VirtualByte(3), 7) == [(100, 4), (50, 2), (104, 1)]
    table.unmap([virtual(7, 2)])
    assert (len(table), seen(table, 6), seen(table, 7), seen(table, 9)) == (1, 103, None, 104)


def test_a_fault_of_nobody_in_particular_names_the_table() -> None:
    with pytest.raises(PageFaultError, match=f"^{PE}.mmu: found an access to 1 bytes at 0x0"):
        table_of().runs(VirtualByte(0), 1)


def test_an_address_below_all_pages_is_a_fault() -> None:
    for table in (table_of(), table_of(mapping(0, 7, 3 * PAGE))):
        with pytest.raises(PageFaultError, match="an access to 5 bytes at -0x5"):
            table.runs(VirtualByte(-5), 5)


def test_a_byte_that_is_mapped_is_not_mapped_again() -> None:
    table = table_of(mapping(0x20, 7, 0x30))
    with pytest.raises(RegistryError) as caught:
        table.map([mapping(0x90, 1), mapping(0x4F, 20, 2)])
    assert str(caught.value) == (
        f"{PE}.mmu: found a map of virtual bytes 0x4f..0x50 while virtual bytes 0x20..0x4f are "
        "mapped, expected bytes that are free; unmap them first"
    )
    assert repr(table) == f"<PageTable '{PE}.mmu', 3 pages in 1 ranges>"


@pytest.mark.parametrize(
    "wrong", [[virtual(2, 2)], [virtual(3, 2)], [virtual(9)], [virtual(2, 3), virtual(2, 3)]]
)
def test_what_was_not_mapped_as_one_range_is_not_unmapped(wrong: list[VirtualRange]) -> None:
    table = table_of(mapping(2, 7, 3))
    with pytest.raises(RegistryError, match="expected a range as it was mapped; unmap what was"):
        table.unmap(wrong)
    assert table.mappings == (mapping(2, 7, 3),)


def test_an_unmapped_range_is_forgotten_at_once() -> None:
    table = table_of(mapping(2, 7, 3))
    assert table.runs(VirtualByte(2), 1) == [(7, 1)]
    table.unmap([virtual(2, 3)])
    with pytest.raises(PageFaultError):
        table.runs(VirtualByte(2), 1)
    assert not table.has_page(VirtualPage(0))


@pytest.mark.parametrize("wrong", [mapping(2, 7, 0), mapping(-1, 7), mapping(2, -7)])
def test_bytes_that_cannot_be_are_refused(wrong: RangeMapping) -> None:
    with pytest.raises(RegistryError, match="bytes that there are; map at least one byte"):
        table_of(wrong)


@pytest.mark.parametrize("num_bytes", [0, -3])
def test_an_access_to_nothing_is_refused(num_bytes: int) -> None:
    table = table_of(mapping(0, 7, 3 * PAGE))
    for _ in range(2):
        with pytest.raises(UnitError, match=f"{PE}: found an access to {num_bytes} bytes at 0x4"):
            table.runs(VirtualByte(4), num_bytes, PE)
        table.runs(VirtualByte(4), 4)
