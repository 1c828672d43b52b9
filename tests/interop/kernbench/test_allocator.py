from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import AllocationError, OutOfMemoryError, SpecError
from tilewright.interop.kernbench.address import PhysAddr
from tilewright.interop.kernbench.allocator import AddressConfig, PEMemAllocator, VirtualAllocator
from tilewright.machine import build_machine, parse_machine
from tilewright.machine.coords import PeCoord

SLICE = 4096


def config(**changes: int) -> AddressConfig:
    fields = {
        "sip_count": 2,
        "cubes_per_sip": 16,
        "pes_per_cube": 8,
        "hbm_bytes_per_cube": 8 * SLICE,
        "hbm_slices_per_cube": 8,
        "tcm_bytes_per_pe": 1024,
        "tcm_scheduler_reserved_bytes": 256,
        "sram_bytes_per_cube": 4096,
    }
    return AddressConfig(**{**fields, **changes})


def allocator(**places: int) -> PEMemAllocator:
    where = {"rack_id": 0, "sip_id": 1, "cube_id": 3, "pe_id": 5, **places}
    return PEMemAllocator(**where, cfg=config())


def test_addresses_are_those_of_the_pe_on_a_machine_with_these_sizes() -> None:
    machine = build_machine(parse_machine("ahbm"))
    spec, layout = machine.spec, machine.addresses
    sizes = AddressConfig(
        2, 16, 8, spec.cube.hbm.capacity_bytes, 8, spec.pe.tcm.capacity_bytes,
        spec.pe.tcm.reserved_bytes, spec.cube.sram.capacity_bytes,
    )  # fmt: skip
    pe = PeCoord(1, 3, 5)
    books = PEMemAllocator(0, *(pe.sip, pe.cube, pe.pe), cfg=sizes)
    first, second = books.alloc_hbm(100), books.alloc_hbm(50)
    assert [first.encode(), second.encode()] == [layout.hbm(pe, 0).value, layout.hbm(pe, 100).value]
    tcm = books.alloc_tcm(64).encode()
    assert tcm == layout.tcm(pe, spec.pe.tcm.reserved_bytes).value


def test_freed_neighbours_are_one_hole_again() -> None:
    books = allocator()
    parts = [books.alloc_hbm(1024) for _ in range(4)]
    with pytest.raises(OutOfMemoryError, match=r"sip1\.cube3\.pe5\.hbm.*asked for by tensor b"):
        books.alloc_hbm(1, name="tensor b")
    books.free_hbm(parts[1], 1024)
    books.free_hbm(parts[2].encode(), 1024)
    assert books.alloc_hbm(2048) == parts[1]


def test_the_tcm_ends_behind_the_reserve() -> None:
    books = allocator()
    whole = books.alloc_tcm(1024 - 256)
    with pytest.raises(OutOfMemoryError, match=r"sip1\.cube3\.pe5\.tcm"):
        books.alloc_tcm(1)
    books.free_tcm(whole, 768)
    assert books.tcm_statistics.used_bytes == 0


@pytest.mark.parametrize(
    ("free", "words"),
    [
        (lambda books, pa: books.free_hbm(pa, 99), "the 100 bytes that alloc_hbm took"),
        (lambda books, pa: books.free_hbm(pa.encode() + 1, 99), "start of a live allocation"),
        (lambda books, _: books.free_hbm(PhysAddr(0, 0, 0), 100), "start of a live allocation"),
        (lambda books, pa: books.free_tcm(pa, 100), r"pe5\.tcm"),
        (lambda books, _: books.free_hbm("0x0", 100), "expected a PhysAddr"),
    ],
)
def test_a_wrong_free_is_refused_and_changes_nothing(free: Any, words: str) -> None:
    books = allocator()
    address = books.alloc_hbm(100)
    with pytest.raises(AllocationError, match=words):
        free(books, address)
    assert books.hbm_statistics.used_bytes == 100
    books.free_hbm(address, 100)
    with pytest.raises(AllocationError, match="once"):
        books.free_hbm(address, 100)


@pytest.mark.parametrize(
    "changes",
    [
        {"sip_count": 0},
        {"hbm_bytes_per_cube": 8 * SLICE + 1},
        {"hbm_slices_per_cube": 4},
        {"tcm_scheduler_reserved_bytes": 1025},
        {"sram_bytes_per_cube": -1},
    ],
)
def test_a_configuration_that_cannot_be_is_refused_by_field(changes: dict[str, int]) -> None:
    found = "hbm_slices_per_cube" if "hbm_bytes_per_cube" in changes else next(iter(changes))
    with pytest.raises(SpecError, match=f"AddressConfig {found}"):
        config(**changes)


@pytest.mark.parametrize("place", [{"pe_id": 8}, {"cube_id": 16}, {"rack_id": 1}, {"sip_id": 16}])
def test_an_allocator_of_a_place_that_is_not_there_is_refused(place: dict[str, int]) -> None:
    with pytest.raises(SpecError, match=next(iter(place))):
        allocator(**place)


# -- virtual addresses -----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=40))
def test_virtual_ranges_are_aligned_apart_and_the_lowest_that_fit(
    steps: list[tuple[bool, int]],
) -> None:
    base, page, pages = 64, 8, 32
    books = VirtualAllocator(base, pages * page, page)
    taken: dict[int, int] = {}  # bytes asked for, by address
    used = [False] * pages

    def mark(address: int, size: int, value: bool) -> range:
        first = (address - base) // page
        covered = range(first, first - (-size // page))
        for index in covered:
            used[index] = value
        return covered

    for frees, size in steps:
        if frees and taken:
            address = sorted(taken)[size % len(taken)]
            mark(address, taken[address], False)
            books.free(address, taken.pop(address))
            continue
        num = -(-size // page)
        fits = [at for at in range(pages - num + 1) if not any(used[at : at + num])]
        if not fits:
            with pytest.raises(OutOfMemoryError):
                books.alloc(size)
            continue
        address = books.alloc(size)
        assert address == base + fits[0] * page
        mark(address, size, True)
        taken[address] = size
    assert books.statistics.used_bytes == page * sum(used)


def test_a_virtual_free_is_checked() -> None:
    books = VirtualAllocator(0x1_0000_0000, 1 << 20, 4096)
    address = books.alloc(5000, name="tensor a")
    with pytest.raises(AllocationError, match="the 8192 bytes that tensor a took"):
        books.free(address, 4096)
    books.free(address, 8192)
    with pytest.raises(AllocationError, match="once"):
        books.free(address, 5000)
    with pytest.raises(AllocationError, match="0 bytes asked for"):
        books.alloc(0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [((1, 8, 8), "va_base"), ((0, 9, 8), "va_size"), ((0, 8, 0), "page_size"), ((-8, 8, 8), "0")],
)
def test_a_virtual_range_of_no_whole_pages_is_refused(
    fields: tuple[int, int, int], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        VirtualAllocator(*fields)
