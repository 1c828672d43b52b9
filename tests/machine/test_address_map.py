from itertools import permutations
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.machine.address_map import BurstPlace, SliceMap, build_slice_map
from tilewright.machine.spec import HbmSpec

MapField = Literal["burst", "bank_group", "column", "bank", "stack_id", "row"]
FIELDS: tuple[MapField, ...] = ("bank_group", "column", "bank", "stack_id", "row")
ahbm = build_slice_map(HbmSpec(), num_slices=8)


@st.composite
def small_maps(draw: st.DrawFn) -> tuple[SliceMap, HbmSpec]:
    """Slices of a few KiB, with a number of rows that need not be a power of two."""
    burst = draw(st.sampled_from((32, 64)))
    row = burst * draw(st.sampled_from((1, 2, 4)))
    groups, banks, stacks = (draw(st.sampled_from((1, 2, 4))) for _ in range(3))
    interleave = burst * draw(st.sampled_from((1, 2)))
    channels = draw(st.sampled_from((1, 2, 4)))
    unit = channels * max(groups * banks * stacks * row, interleave)
    spec = HbmSpec(
        model="simple",  # the one with banks takes rows as the highest bits alone
        pseudo_channels=channels,
        bank_groups=groups,
        banks=banks,
        stack_ids=stacks,
        row_bytes=row,
        burst_bytes=burst,
        interleave_bytes=interleave,
        capacity_bytes=unit * draw(st.integers(1, 3)),
        address_map=("burst", *draw(st.sampled_from(list(permutations(FIELDS))))),
    )
    return build_slice_map(spec, num_slices=1), spec


@given(small_maps())
def test_bytes_and_cells_belong_to_each_other_one_to_one(case: tuple[SliceMap, HbmSpec]) -> None:
    slice_map, spec = case
    cells = set()
    for offset in range(0, slice_map.slice_bytes, slice_map.burst_bytes):
        channel, burst = slice_map.burst_of(offset)
        assert slice_map.offset_of(channel, burst) == offset
        place = slice_map.place_of(burst)
        assert slice_map.burst_at(place) == burst
        cells.add((channel, place))
    channels = slice_map.num_pseudo_channels
    rows = spec.capacity_bytes // channels
    rows //= spec.row_bytes * spec.bank_groups * spec.banks * spec.stack_ids
    columns = spec.row_bytes // spec.burst_bytes
    sizes = (channels, spec.bank_groups, spec.banks, spec.stack_ids, rows, columns)
    for channel, place in cells:
        places = (place.bank_group, place.bank, place.stack_id, place.row, place.column)
        assert all(0 <= value < size for value, size in zip((channel, *places), sizes, strict=True))
    total = 1
    for size in sizes:
        total *= size
    assert len(cells) == total


@given(st.integers(0, ahbm.slice_bytes - 1))
def test_the_default_map_takes_any_byte_there_and_back(offset: int) -> None:
    channel, burst = ahbm.burst_of(offset)
    start = ahbm.offset_of(channel, burst)
    assert start <= offset < start + 32
    assert ahbm.burst_at(ahbm.place_of(burst)) == burst


def test_consecutive_256_bytes_rotate_over_the_eight_channels_of_a_slice() -> None:
    assert [ahbm.burst_of(256 * chunk)[0] for chunk in range(10)] == [*range(8), 0, 1]
    assert [ahbm.burst_of(offset)[1] for offset in (0, 31, 32, 255, 2048)] == [0, 0, 1, 7, 8]


def test_the_default_map_changes_the_bank_group_first_then_the_column() -> None:
    places = [ahbm.place_of(burst) for burst in (0, 1, 2, 64, 512, 1024)]
    assert places == [
        BurstPlace(bank_group=0, bank=0, stack_id=0, row=0, column=0),
        BurstPlace(bank_group=1, bank=0, stack_id=0, row=0, column=0),
        BurstPlace(bank_group=0, bank=0, stack_id=0, row=0, column=1),
        BurstPlace(bank_group=0, bank=1, stack_id=0, row=0, column=0),
        BurstPlace(bank_group=0, bank=0, stack_id=1, row=0, column=0),
        BurstPlace(bank_group=0, bank=0, stack_id=0, row=1, column=0),
    ]
    last = ahbm.place_of(ahbm.num_bursts - 1)
    assert last == BurstPlace(bank_group=1, bank=7, stack_id=1, row=24_575, column=31)


def test_a_byte_of_a_cube_belongs_to_the_pe_of_its_slice() -> None:
    assert [ahbm.owner_of(offset) for offset in (0, 6 * 2**30 - 1, 6 * 2**30)] == [0, 0, 1]


def test_a_byte_outside_the_slice_is_refused() -> None:
    with pytest.raises(SpecError, match="offset in a slice"):
        ahbm.burst_of(ahbm.slice_bytes)
    with pytest.raises(SpecError, match="pseudo-channel"):
        ahbm.offset_of(8, 0)
    with pytest.raises(SpecError, match="bank"):
        ahbm.burst_at(BurstPlace(bank_group=0, bank=8, stack_id=0, row=0, column=0))
