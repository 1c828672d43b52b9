import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.mmu import Mmu
from tilewright.errors import PageFaultError, RegistryError, UnitError
from tilewright.machine.spec import MmuSpec
from tilewright.memory import (
    PageMapping,
    PageRange,
    PageTable,
    PhysicalPage,
    VirtualByte,
    VirtualPage,
)

NAME = "sip0.cube3.pe5.mmu"


def mmu_of(num_pages: int = 0, *, entries: int = 4, page_bytes: int = 65_536) -> Mmu:
    spec = MmuSpec(page_bytes=page_bytes, tlb_entries=entries, hit_ps=7, walk_ps=50_000)
    mmu = Mmu(NAME, spec, PageTable(NAME, page_bytes))
    mmu.map([mapping(page) for page in range(num_pages)])
    return mmu


def pages(*numbers: int) -> list[VirtualPage]:
    return [VirtualPage(number) for number in numbers]


def only(page: int) -> PageRange:
    return PageRange(VirtualPage(page), 1)


def mapping(page: int) -> PageMapping:
    return PageMapping(only(page), PhysicalPage(1_000 + page))


class ListModel:
    """A TLB as a list, most recently used last, searched from end to end."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        self.kept: list[int] = []

    def has(self, page: int) -> bool:
        is_kept = page in self.kept
        self.forget(page)
        self.kept = [*self.kept, page][-self.entries :]
        return is_kept

    def forget(self, page: int) -> None:
        self.kept = [other for other in self.kept if other != page]


@given(
    entries=st.integers(1, 6),
    # few pages in long runs: each is used again, and evicted, many times
    steps=st.lists(
        st.tuples(st.sampled_from("tttttttu"), st.integers(0, 7)), min_size=60, max_size=90
    ),
)
def test_a_tlb_keeps_what_a_list_of_the_last_used_pages_keeps(
    entries: int, steps: list[tuple[str, int]]
) -> None:
    mmu, model = mmu_of(10, entries=entries), ListModel(entries)
    hits = 0
    for step, number in steps:
        page = VirtualPage(number)
        if step == "u":  # a page that goes and comes back is no longer kept
            mmu.unmap([only(page)])
            mmu.map([mapping(page)])
            model.forget(number)
            continue
        found = mmu.translate(page)
        is_hit = model.has(number)
        hits += is_hit
        assert (found.page, found.is_hit) == (1_000 + number, is_hit)
        assert found.cost_ps == (7 if is_hit else 50_000)
    num_translations = sum(step == "t" for step, _ in steps)
    assert (mmu.state.hits, mmu.state.walks) == (hits, num_translations - hits)


def test_the_least_recently_used_page_goes_though_it_is_not_the_oldest() -> None:
    mmu = mmu_of(3, entries=2)
    hits = [mmu.translate(page).is_hit for page in pages(0, 1, 0, 2, 0, 1)]
    assert hits == [False, False, True, False, True, False]


def test_the_default_tlb_reaches_32_mib() -> None:
    spec = MmuSpec()
    mmu = Mmu(NAME, spec, PageTable(NAME, spec.page_bytes))
    mmu.map([PageMapping(PageRange(VirtualPage(0), 513), PhysicalPage(7))])
    walked = sum(mmu.translate(VirtualPage(page)).cost_ps for page in range(512))
    assert walked == 512 * 50_000
    assert all(mmu.translate(VirtualPage(page)).cost_ps == 0 for page in range(512))
    mmu.translate(VirtualPage(512))
    assert not mmu.translate(VirtualPage(0)).is_hit


def test_a_page_fault_names_address_and_pe_and_changes_nothing() -> None:
    mmu = mmu_of(2)
    with pytest.raises(PageFaultError) as caught:
        mmu.translate(VirtualPage(2))
    assert str(caught.value) == (
        f"{NAME}: found an access to virtual page 2 (0x20000..0x2ffff), which is not mapped, "
        "expected a mapped page; map it before the access, or correct the address"
    )
    assert (caught.value.address, f"{caught.value.pe}.mmu") == (0x20000, NAME)
    assert (mmu.state.hits, mmu.state.walks, len(mmu.state.tlb)) == (0, 0, 0)


def test_an_unmapped_page_faults_though_it_was_at_hand() -> None:
    mmu = mmu_of(2)
    mmu.translate(VirtualPage(1))
    mmu.unmap([only(1)])
    with pytest.raises(PageFaultError, match="found an access to virtual page 1 "):
        mmu.translate(VirtualPage(1))


def test_all_pages_of_an_unmapped_range_leave_the_tlb_and_no_others() -> None:
    mmu = mmu_of()
    mmu.map([PageMapping(PageRange(VirtualPage(4), 3), PhysicalPage(50)), mapping(3), mapping(7)])
    for page in pages(3, 4, 6, 7):
        mmu.translate(page)
    mmu.unmap([PageRange(VirtualPage(4), 3)])
    assert list(mmu.state.tlb) == [3, 7]


def test_an_overlapping_map_is_refused_as_a_whole() -> None:
    mmu = mmu_of(2)
    before = mmu.table.mappings
    with pytest.raises(RegistryError, match=r"found a map of virtual pages 1\.\.1 while"):
        mmu.map([mapping(5), mapping(1)])
    assert mmu.table.mappings == before


@pytest.mark.parametrize("unmapped", [[only(0), only(7)], [only(0), only(1), only(0)]])
def test_a_wrong_unmap_is_refused_as_a_whole(unmapped: list[PageRange]) -> None:
    mmu = mmu_of(2)
    mmu.translate(VirtualPage(0))
    before = mmu.table.mappings
    with pytest.raises(RegistryError, match="expected a range as it was mapped"):
        mmu.unmap(unmapped)
    assert mmu.table.mappings == before
    assert mmu.translate(VirtualPage(0)).is_hit


@given(
    accesses=st.lists(st.tuples(st.integers(0, 159), st.integers(1, 60)), min_size=1, max_size=30),
    entries=st.integers(1, 6),
)
def test_a_reach_pays_one_walk_if_one_of_its_pages_is_not_at_hand(
    accesses: list[tuple[int, int]], entries: int
) -> None:
    mmu, model = mmu_of(10, entries=entries, page_bytes=16), ListModel(entries)
    for address, wanted in accesses:
        num_bytes = min(wanted, 160 - address)
        runs, cost_ps = mmu.reach(VirtualByte(address), num_bytes)
        hits = [model.has(page) for page in mmu.pages_of(address, num_bytes)]
        assert runs == [(16_000 + address, num_bytes)]
        assert cost_ps == (7 if all(hits) else 50_000)


def test_a_reach_over_places_that_are_apart_has_a_run_for_each() -> None:
    mmu = mmu_of(page_bytes=16)
    first, last = PageRange(VirtualPage(0), 2), PageRange(VirtualPage(2), 1)
    mmu.map([PageMapping(first, PhysicalPage(5)), PageMapping(last, PhysicalPage(9))])
    assert mmu.reach(VirtualByte(20), 20) == ([(100, 12), (144, 8)], 50_000)


def test_a_reach_beyond_what_is_mapped_names_the_pe_and_changes_nothing() -> None:
    mmu = mmu_of(2, page_bytes=16)
    with pytest.raises(PageFaultError, match="an access to 20 bytes at 0x14, of which") as caught:
        mmu.reach(VirtualByte(20), 20)
    assert (caught.value.address, f"{caught.value.pe}.mmu") == (32, NAME)
    assert (mmu.state.hits, mmu.state.walks, len(mmu.state.tlb)) == (0, 0, 0)


@given(
    address=st.integers(0, 10_000), num_bytes=st.integers(1, 3_000), page_bits=st.integers(0, 11)
)
def test_an_access_touches_exactly_the_pages_of_its_bytes(
    address: int, num_bytes: int, page_bits: int
) -> None:
    touched = {byte >> page_bits for byte in range(address, address + num_bytes)}
    found = mmu_of(page_bytes=1 << page_bits).pages_of(address, num_bytes)
    assert list(found) == sorted(touched)


@pytest.mark.parametrize(("address", "num_bytes"), [(-1, 1), (0, 0), (0, -5), (1.0, 1), (0, True)])
def test_an_access_that_is_none_is_refused(address: int, num_bytes: int) -> None:
    with pytest.raises(UnitError, match=f"{NAME}: found an access to {num_bytes} bytes"):
        mmu_of().pages_of(address, num_bytes)
