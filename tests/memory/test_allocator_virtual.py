import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import AllocationError, OutOfMemoryError
from tilewright.memory import VirtualSpace


@given(sizes=st.lists(st.integers(1, 300_000), max_size=12), page_bits=st.integers(12, 16))
def test_ranges_are_whole_pages_with_one_between_them(sizes: list[int], page_bits: int) -> None:
    page = 1 << page_bits
    space = VirtualSpace(page_bytes=page)
    expected = 0x1_0000_0000
    for size in sizes:
        assert space.allocate(size, requester="r") == expected
        expected += (-(-size // page) + 1) * page
    assert space.statistics.used_bytes == expected - 0x1_0000_0000


def test_the_first_hole_that_fits_is_used_again() -> None:
    space = VirtualSpace(page_bytes=4096)
    first = space.allocate(5000, requester="a")
    space.allocate(1, requester="b")
    space.free(first, 5000)
    assert space.allocate(8192, requester="c") == first


def test_a_free_names_the_size_that_was_asked_for() -> None:
    space = VirtualSpace(page_bytes=4096)
    address = space.allocate(5000, requester="tensor a")
    with pytest.raises(AllocationError, match="the 12288 bytes that tensor a took there"):
        space.free(address, 4096)


def test_64_gib_are_there_with_a_page_behind_each_range_and_no_more() -> None:
    space = VirtualSpace(page_bytes=65_536)
    space.allocate(64 * 2**30 - 65_536, requester="tensor a")
    with pytest.raises(OutOfMemoryError, match="virtual space: found 131072 bytes aligned to"):
        space.allocate(1, requester="tensor b")
