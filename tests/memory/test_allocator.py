"""Allocators against a model that looks at every offset."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import AllocationError, OutOfMemoryError
from tilewright.memory import Allocation, Allocator

CAPACITY = 96


@dataclass
class EveryOffset:
    """Tries all offsets of a space from the lowest on; keeps who has each byte."""

    start: int
    owner: dict[int, int] = field(default_factory=dict)  # by byte: the offset of its allocation
    peak: int = 0

    def allocate(self, num_bytes: int, alignment: int) -> int | None:
        for offset in range(self.start, self.start + CAPACITY - num_bytes + 1):
            wanted = range(offset, offset + num_bytes)
            if offset % alignment == 0 and not any(byte in self.owner for byte in wanted):
                self.owner |= dict.fromkeys(wanted, offset)
                self.peak = max(self.peak, len(self.owner))
                return offset
        return None

    def free(self, offset: int) -> None:
        self.owner = {byte: first for byte, first in self.owner.items() if first != offset}

    @property
    def holes(self) -> list[int]:
        sizes: list[int] = []
        last_is_free = False
        for byte in range(self.start, self.start + CAPACITY):
            is_free = byte not in self.owner
            if is_free and last_is_free:
                sizes[-1] += 1
            elif is_free:
                sizes.append(1)
            last_is_free = is_free
        return sizes


steps = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from([1, 1, 2, 8, 16]))
    | st.integers(0, 20),  # frees the allocation of that number, if there is one
    max_size=40,
)


@settings(max_examples=300)
@given(steps=steps, start=st.sampled_from([0, 7, 1 << 32]))
def test_space_is_given_and_taken_back_as_by_looking_at_every_offset(
    steps: list[tuple[int, int] | int], start: int
) -> None:
    allocator = Allocator("m", CAPACITY, start=start)
    model = EveryOffset(start)
    live: list[tuple[int, int]] = []
    for step in steps:
        if isinstance(step, int):
            if live:
                offset, num_bytes = live.pop(step % len(live))
                allocator.free(offset, num_bytes)
                model.free(offset)
        else:
            expected = model.allocate(*step)
            if expected is None:
                with pytest.raises(OutOfMemoryError):
                    allocator.allocate(step[0], requester="r", alignment=step[1])
            else:
                assert allocator.allocate(step[0], requester="r", alignment=step[1]) == expected
                live.append((expected, step[0]))
        now = allocator.statistics
        assert (now.used_bytes, now.peak_bytes) == (len(model.owner), model.peak)
        assert (now.num_holes, now.num_live) == (len(model.holes), len(live))
        assert now.largest_hole_bytes == max(model.holes, default=0)
        assert now.free_bytes == sum(model.holes)
        assert allocator.live == tuple(Allocation(*space, "r") for space in sorted(live))


def test_running_out_names_who_asked_and_who_has_it() -> None:
    allocator = Allocator("sip0.cube3.pe5.hbm", 1000, alignment=10)
    for number, num_bytes in enumerate((100, 300, 150, 200)):
        allocator.allocate(num_bytes, requester=f"tensor t{number}")
    allocator.free(100, 300)
    with pytest.raises(OutOfMemoryError) as caught:
        allocator.allocate(400, requester="tensor big")
    assert str(caught.value) == (
        "sip0.cube3.pe5.hbm: found 400 bytes aligned to 10 asked for by tensor big with 550 of "
        "1000 free, 300 in one hole, taken by tensor t3 (200 bytes), tensor t2 (150 bytes), "
        "tensor t0 (100 bytes), expected a hole that fits; free or shrink one of them"
    )


def test_an_empty_memory_is_taken_by_nobody() -> None:
    with pytest.raises(OutOfMemoryError, match="with 0 of 0 free, 0 in one hole, taken by nobody"):
        Allocator("m", 0).allocate(1, requester="r")


@pytest.mark.parametrize(
    ("offset", "num_bytes", "expected"),
    [
        (8, 16, "the start of a live allocation"),
        (0, 15, "the 16 bytes that tensor a took there"),
    ],
)
def test_a_free_of_something_else_is_refused_and_changes_nothing(
    offset: int, num_bytes: int, expected: str
) -> None:
    allocator = Allocator("m", 64)
    allocator.allocate(16, requester="tensor a")
    with pytest.raises(AllocationError) as caught:
        allocator.free(offset, num_bytes)
    assert str(caught.value) == (
        f"m: found a free of {num_bytes} bytes at {offset:#x}, expected {expected}; "
        "free what was allocated, once"
    )
    assert allocator.statistics.used_bytes == 16


def test_a_second_free_is_refused() -> None:
    allocator = Allocator("m", 64)
    allocator.free(allocator.allocate(16, requester="a"), 16)
    with pytest.raises(AllocationError, match="the start of a live allocation"):
        allocator.free(0, 16)


@pytest.mark.parametrize(("num_bytes", "alignment"), [(0, 1), (-4, 1), (4, 0), (True, 1)])
def test_a_size_that_is_none_is_refused(num_bytes: int, alignment: int) -> None:
    with pytest.raises(AllocationError, match="asked for by tensor a, expected an int of at least"):
        Allocator("m", 64).allocate(num_bytes, requester="tensor a", alignment=alignment)


def test_many_allocations_and_frees_stay_quick() -> None:
    """Thirty thousand holes below the space that fits: to try each takes longer than a test may."""
    allocator = Allocator("m", 2**40, alignment=64)
    offsets = [allocator.allocate(64, requester="r") for _ in range(60_000)]
    for offset in offsets[::2]:
        allocator.free(offset, 64)
    for _ in range(30_000):
        allocator.allocate(128, requester="large")
    assert allocator.statistics.num_holes == 30_001
