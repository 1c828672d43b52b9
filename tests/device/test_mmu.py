import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.device.mmu import Mmu, Walk
from tilewright.engine.core import NO_WALK
from tilewright.errors import PageFaultError, RegistryError
from tilewright.machine.spec import MmuSpec
from tilewright.memory import (
    PageTable,
    PhysicalByte,
    RangeMapping,
    VirtualByte,
    VirtualPage,
    VirtualRange,
)
from tilewright.memory.page_table import GAP

NAME = "sip0.cube3.pe5.mmu"


class Stream:
    """Whose commands look pages up; a test says which of its walks have ended."""

    def __init__(self) -> None:
        self.ended: set[int] = set()

    def has_walked(self, command: int) -> bool:
        return command in self.ended


ALONE = Stream()


def mmu_of(num_pages: int = 0, *, entries: int = 4, page_bytes: int = 65_536) -> Mmu:
    spec = MmuSpec(page_bytes=page_bytes, tlb_entries=entries, hit_ps=7, walk_ps=50_000)
    mmu = Mmu(NAME, spec, PageTable(NAME, page_bytes))
    mmu.table.map([mapping(page, page_bytes=page_bytes) for page in range(num_pages)])
    return mmu


def pages(first: int, count: int = 1, page_bytes: int = 65_536) -> VirtualRange:
    return VirtualRange(VirtualByte(first * page_bytes), count * page_bytes)


def mapping(
    page: int, physical: int | None = None, *, count: int = 1, page_bytes: int = 65_536
) -> RangeMapping:
    """Whole pages, in physical pages from ``physical`` on, else 1000 pages further on."""
    at = (1_000 + page if physical is None else physical) * page_bytes
    return RangeMapping(pages(page, count, page_bytes), PhysicalByte(at))


def is_hit(mmu: Mmu, page: int, by: Stream = ALONE) -> bool:
    """Whether a page is at hand for a command that is later than all others."""
    command = mmu.state.hits + mmu.state.walks + 1
    return mmu.look_up(VirtualPage(page), by, command) != command


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
            mmu.unmap([pages(page)])
            mmu.table.map([mapping(page)])
            model.forget(number)
            continue
        is_kept = model.has(number)
        hits += is_kept
        assert is_hit(mmu, page) == is_kept
    num_translations = sum(step == "t" for step, _ in steps)
    assert (mmu.state.hits, mmu.state.walks) == (hits, num_translations - hits)


def test_the_least_recently_used_page_goes_though_it_is_not_the_oldest() -> None:
    mmu = mmu_of(3, entries=2)
    hits = [is_hit(mmu, page) for page in (0, 1, 0, 2, 0, 1)]
    assert hits == [False, False, True, False, True, False]


def test_the_default_tlb_reaches_32_mib() -> None:
    spec = MmuSpec()
    mmu = Mmu(NAME, spec, PageTable(NAME, spec.page_bytes))
    mmu.table.map([mapping(0, 7, count=513)])
    assert not any(is_hit(mmu, page) for page in range(512))
    assert all(is_hit(mmu, page) for page in range(512))
    assert not is_hit(mmu, 512)
    assert not is_hit(mmu, 0)


def test_an_unmapped_page_faults_though_it_was_at_hand() -> None:
    mmu = mmu_of(2)
    assert not is_hit(mmu, 1)
    mmu.unmap([pages(1)])
    with pytest.raises(PageFaultError, match="of which virtual page 1 "):
        mmu.reach(VirtualByte(65_536), 1, Walk(ALONE, 9))


def test_all_pages_of_an_unmapped_range_leave_the_tlb_and_no_others() -> None:
    mmu = mmu_of()
    mmu.table.map([mapping(4, 50, count=3), mapping(3), mapping(7)])
    for page in (3, 4, 6, 7):
        is_hit(mmu, page)
    mmu.unmap([pages(4, 3)])
    assert list(mmu.state.tlb) == [3, 7]


def test_an_overlapping_map_is_refused_as_a_whole() -> None:
    mmu = mmu_of(2)
    before = mmu.table.mappings
    with pytest.raises(
        RegistryError, match=r"found a map of virtual bytes 0x10000\.\.0x1ffff while"
    ):
        mmu.table.map([mapping(5), mapping(1)])
    assert mmu.table.mappings == before


@pytest.mark.parametrize("unmapped", [[pages(0), pages(7)], [pages(0), pages(1), pages(0)]])
def test_a_wrong_unmap_is_refused_as_a_whole(unmapped: list[VirtualRange]) -> None:
    mmu = mmu_of(2)
    is_hit(mmu, 0)
    before = mmu.table.mappings
    with pytest.raises(RegistryError, match="expected a range as it was mapped"):
        mmu.unmap(unmapped)
    assert mmu.table.mappings == before
    assert is_hit(mmu, 0)


@given(
    accesses=st.lists(st.tuples(st.integers(0, 159), st.integers(1, 60)), min_size=1, max_size=30),
    entries=st.integers(1, 6),
)
def test_a_reach_walks_if_one_of_its_pages_is_not_at_hand(
    accesses: list[tuple[int, int]], entries: int
) -> None:
    mmu, model = mmu_of(10, entries=entries, page_bytes=16), ListModel(entries)
    for command, (address, wanted) in enumerate(accesses, 1):
        num_bytes = min(wanted, 160 - address)
        runs, walk = mmu.reach(VirtualByte(address), num_bytes, Walk(ALONE, command))
        touched = sorted({byte // 16 for byte in range(address, address + num_bytes)})
        hits = [model.has(page) for page in touched]
        assert runs == [(16_000 + address, num_bytes)]
        assert (walk == command) == (not all(hits))


@given(accesses=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=30))
def test_a_reach_waits_for_the_last_command_of_its_stream_that_walked_for_its_pages(
    accesses: list[tuple[int, int]],
) -> None:
    mmu = mmu_of(8, entries=8, page_bytes=16)
    walked: dict[int, int] = {}
    for command, (first, count) in enumerate(accesses, 1):
        _, walk = mmu.reach(VirtualByte(16 * first), 16 * count, Walk(ALONE, command))
        commands = [walked.setdefault(page, command) for page in range(first, first + count)]
        assert walk == max(commands)


def test_a_page_whose_walk_by_another_stream_has_ended_is_at_hand_for_all() -> None:
    mmu, first, second, third = mmu_of(1), Stream(), Stream(), Stream()
    page = VirtualPage(0)
    assert mmu.look_up(page, first, 4) == 4
    first.ended.add(4)
    assert mmu.look_up(page, second, 1) == NO_WALK
    assert mmu.look_up(page, third, 1) == NO_WALK
    assert mmu.look_up(page, first, 5) == NO_WALK
    assert (mmu.state.hits, mmu.state.walks) == (3, 1)


def test_a_stream_walks_once_for_a_page_that_another_stream_is_walking_for() -> None:
    mmu, first, second, third = mmu_of(1), Stream(), Stream(), Stream()
    page = VirtualPage(0)
    assert mmu.look_up(page, first, 4) == 4
    assert mmu.look_up(page, second, 1) == 1
    assert mmu.look_up(page, first, 5) == 4
    assert mmu.look_up(page, second, 2) == 1
    second.ended.add(1)  # whichever walk ends first puts the page there
    assert mmu.look_up(page, third, 7) == NO_WALK
    assert (mmu.state.hits, mmu.state.walks) == (3, 2)


def test_a_reach_over_places_that_are_apart_has_a_run_for_each() -> None:
    mmu = mmu_of(page_bytes=16)
    mmu.table.map([mapping(0, 5, count=2, page_bytes=16), mapping(2, 9, page_bytes=16)])
    assert mmu.reach(VirtualByte(20), 20, Walk(ALONE, 3)) == ([(100, 12), (144, 8)], 3)


def test_a_reach_beyond_what_is_mapped_names_the_pe_and_changes_nothing() -> None:
    mmu = mmu_of(2, page_bytes=16)
    with pytest.raises(PageFaultError, match="an access to 20 bytes at 0x14, of which") as caught:
        mmu.reach(VirtualByte(20), 20, Walk(ALONE, 1))
    assert (caught.value.address, f"{caught.value.pe}.mmu") == (32, NAME)
    assert (mmu.state.hits, mmu.state.walks, len(mmu.state.tlb)) == (0, 0, 0)


def test_a_page_with_two_ranges_stays_in_the_tlb_until_both_are_gone() -> None:
    mmu = mmu_of(page_bytes=16)
    ranges = [VirtualRange(VirtualByte(first), 4) for first in (0, 4)]
    mmu.table.map([RangeMapping(virtual, PhysicalByte(90)) for virtual in ranges])
    is_hit(mmu, 0)
    mmu.unmap(ranges[:1])
    assert is_hit(mmu, 0)
    mmu.unmap(ranges[1:])
    assert not mmu.state.tlb


def test_segments_around_a_gap_look_up_every_page_once() -> None:
    mmu = mmu_of(page_bytes=16)
    near = RangeMapping(VirtualRange(VirtualByte(0), 6), PhysicalByte(90))
    far = RangeMapping(VirtualRange(VirtualByte(18), 30), PhysicalByte(200))
    mmu.table.map([near, far])
    segments = range(4, 4 + 3 * 16, 16)  # 4..5, 20..21, 36..37
    runs = [(94, 2), (GAP, 14), (202, 18)]
    assert mmu.reach_segments(segments, 2, Walk(ALONE, 3)) == (runs, 3)
    assert (mmu.state.hits, mmu.state.walks) == (0, 3)
