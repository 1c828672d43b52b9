from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.packing import image_of, index_of
from tests.runtime.placements import TARGETS, draw_array, placements
from tilewright.errors import PlacementError
from tilewright.executor.layout import bytes_of_elements
from tilewright.language.dtype import DType, float16, float32, int1, int4, uint8
from tilewright.machine.coords import Grid, PeCoord
from tilewright.runtime.placement.placement import Placement, Targets, place
from tilewright.runtime.placement.policy import DPPolicy, Interleave, Split, split_evenly

ONE_CUBE = Targets(sips=(0,), cubes=(0,), pes=tuple(range(4)))


def over_pes(shape: tuple[int, ...], pe: Any, dtype: DType = uint8, **kwargs: Any) -> Placement:
    return place("t", shape, dtype, DPPolicy(pe=pe, **kwargs), ONE_CUBE, page_bytes=16)


def boxes(placement: Placement) -> list[tuple[tuple[int, int], ...]]:
    return [tuple((axis.start, axis.stop) for axis in shard.box) for shard in placement.shards]


@given(placement=placements())
def test_replicas_are_the_same_bytes_at_the_same_place(placement: Placement) -> None:
    owner = {shard.offset: shard for shard in placement.owners}
    for shard in placement.shards:
        first = owner[shard.offset]
        assert first.home <= shard.home
        assert (shard.part, shard.ranges) == (first.part, first.ranges)


@given(placement=placements())
def test_every_element_lies_in_one_part_and_every_byte_has_one_owner(placement: Placement) -> None:
    count = np.zeros(placement.shape, np.int64)
    for part in placement.parts:
        count[index_of(part)] += 1
    assert (count == 1).all()
    owned = [(byte, shard) for shard in placement.owners for run in shard.ranges for byte in run]
    assert sorted(byte for byte, _ in owned) == list(range(placement.num_bytes))
    assert all(placement.owner_of(byte) == shard.home for byte, shard in owned)
    if placement.dtype.bits >= 8:
        assert placement.num_bytes * 8 == prod(placement.shape) * placement.dtype.bits


@given(placement=placements())
def test_each_pe_has_one_shard_and_none_if_it_would_be_empty(placement: Placement) -> None:
    homes = list(placement.homes)
    assert homes == sorted(set(homes))
    assert all(shard.num_bytes for shard in placement.shards)
    for shard in placement.shards:
        assert placement.shard_of(shard.home) is shard
        assert placement.local_offset(shard.home) == shard.offset
        if shard.is_whole:
            assert prod(placement.local_shape(shard.home)) == prod(map(len, shard.box))


@given(data=st.data(), placement=placements())
def test_a_global_tensor_is_its_row_major_bytes_with_shards_of_whole_pages(
    data: st.DataObject, placement: Placement
) -> None:
    array = draw_array(data, placement.shape, placement.dtype)
    is_same = True
    if placement.num_bytes:
        expected = bytes_of_elements(array, placement.dtype)
        # random elements, so that another order makes other bytes, unless they are few or bits
        is_same = image_of(placement, array).tobytes() == expected.tobytes()
    pages = [
        run.start % placement.page_bytes == 0
        and (run.stop % placement.page_bytes == 0 or run.stop == placement.num_bytes)
        for shard in placement.shards
        for run in shard.ranges
    ]
    if placement.is_global:
        assert is_same
        assert all(pages)
    elif all(pages) and placement.dtype is not int1 and prod(placement.shape) > 32:
        assert not is_same


@given(extent=st.integers(0, 50), num_parts=st.integers(1, 9), start=st.integers(0, 9))
def test_parts_of_an_axis_differ_by_one_and_the_first_are_longer(
    extent: int, num_parts: int, start: int
) -> None:
    parts = split_evenly(range(start, start + extent), num_parts)
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
    assert [index for part in parts for index in part] == list(range(start, start + extent))


@pytest.mark.parametrize(
    ("shape", "layout", "expected"),
    [
        ((6, 5), "row_wise", [(0, 2), (2, 4), (4, 5), (5, 6)]),
        ((2, 5), "row_wise", [(0, 1), (1, 2)]),
        ((7, 5, 3), "row_wise", [(0, 2), (2, 4), (4, 6), (6, 7)]),
        ((7, 5, 3), Split(0), [(0, 2), (2, 4), (4, 6), (6, 7)]),
        ((6,), Split(-1), [(0, 2), (2, 4), (4, 5), (5, 6)]),
    ],
)
def test_rows_are_the_first_axis(
    shape: tuple[int, ...], layout: Any, expected: list[tuple[int, int]]
) -> None:
    assert [box[0] for box in boxes(over_pes(shape, layout))] == expected


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (2, 1, 3, 6)])
@pytest.mark.parametrize("layout", ["column_wise", Split(-1)])
def test_columns_are_the_last_axis(shape: tuple[int, ...], layout: Any) -> None:
    found = [box[-1] for box in boxes(over_pes(shape, layout))]
    assert found == [(0, 2), (2, 4), (4, 5), (5, 6)]


def test_a_vector_is_one_row_so_the_first_unit_has_all_of_it() -> None:
    assert boxes(over_pes((6,), "row_wise")) == [((0, 6),)]


@pytest.mark.parametrize("layout", ["row_wise", "column_wise", Interleave(16)])
def test_a_scalar_goes_to_the_first_unit(layout: Any) -> None:
    placement = over_pes((), layout, float32)
    assert placement.homes == (PeCoord(0, 0, 0),)
    assert placement.local_shape(PeCoord(0, 0, 0)) == ()


def test_levels_divide_what_the_level_above_has() -> None:
    policy = DPPolicy(sip="row_wise", cube=Split(1), pe="row_wise")
    placement = place("t", (8, 6), float16, policy, TARGETS, page_bytes=64)
    assert placement.local_shape(PeCoord(1, 2, 1)) == (2, 2)
    shard = placement.shard_of(PeCoord(1, 2, 1))
    assert shard.box == (range(6, 8), range(4, 6))
    assert shard.offset == 11 * 8  # the last of 2 x 3 x 2 parts of four elements


def test_counts_take_the_first_units() -> None:
    policy = DPPolicy(cube="row_wise", num_sips=1, num_cubes=2, num_pes=1)
    placement = place("t", (80, 4), float16, policy, TARGETS, page_bytes=64)
    assert placement.homes == (PeCoord(0, 0, 0), PeCoord(0, 1, 0))
    assert placement.local_size(PeCoord(0, 1, 0), 0) == 40
    assert placement.local_size(PeCoord(0, 1, 0), -1) == 4


def test_targets_need_not_begin_with_the_first_sip() -> None:
    grid = Grid(num_sips=3, columns=2, rows=1, num_pes_per_cube=2)
    targets = Targets.of_grid(grid, sips=(2,))
    placement = place("t", (4,), float16, DPPolicy(), targets, page_bytes=64)
    assert placement.homes == tuple(PeCoord(2, cube, pe) for cube in (0, 1) for pe in (0, 1))
    assert Targets.of_grid(grid).sips == (0, 1, 2)


def test_blocks_of_bytes_go_to_the_units_in_turn() -> None:
    placement = over_pes((100,), Interleave(16))
    assert placement.is_global
    assert [shard.ranges for shard in placement.shards] == [
        (range(16), range(64, 80)),
        (range(16, 32), range(80, 96)),
        (range(32, 48), range(96, 100)),
        (range(48, 64),),
    ]
    assert placement.owner_of(97) == PeCoord(0, 0, 2)


def test_a_split_at_pages_is_global_and_one_inside_a_page_is_not() -> None:
    assert over_pes((64,), Split(0)).is_global
    assert not over_pes((60,), Split(0)).is_global
    assert over_pes((4, 16), "row_wise").is_global
    assert not over_pes((16, 4), "column_wise").is_global
    assert over_pes((3, 5), "replicate").is_global


def test_nibbles_of_a_part_begin_at_a_whole_byte() -> None:
    placement = over_pes((4, 3), "row_wise", int4)
    assert [shard.offset for shard in placement.shards] == [0, 2, 4, 6]
    assert placement.num_bytes == 8
    assert not placement.is_row_major


def test_an_empty_tensor_has_no_shards() -> None:
    placement = over_pes((4, 0, 2), "row_wise")
    assert (placement.shards, placement.num_bytes, placement.is_global) == ((), 0, True)


def test_what_a_sip_has_begins_with_its_lowest_shard() -> None:
    placement = place("t", (4, 6), uint8, DPPolicy(sip="row_wise"), TARGETS, page_bytes=16)
    assert [placement.sip_offset(sip) for sip in (0, 1)] == [0, 12]


@pytest.mark.parametrize(
    ("layout", "found"),
    [
        (Split(2), "tensor 't', DPPolicy pe: found axis 2, expected one from -2 to 1"),
        (Split(-3), "tensor 't', DPPolicy pe: found axis -3, expected one from -2 to 1"),
        (Interleave(24), "found blocks of 24 bytes, expected a multiple of 16, a page; write Int"),
    ],
)
def test_a_layout_that_does_not_fit_the_tensor_is_refused(layout: Any, found: str) -> None:
    with pytest.raises(PlacementError) as caught:
        over_pes((4, 4), layout)
    assert found in str(caught.value)


def test_an_axis_of_a_scalar_is_refused() -> None:
    with pytest.raises(PlacementError, match="a scalar has no axes"):
        over_pes((), Split(0))


def test_more_units_than_there_are_are_refused() -> None:
    with pytest.raises(PlacementError) as caught:
        over_pes((4, 4), "row_wise", num_pes=5)
    assert str(caught.value) == (
        "tensor 't', DPPolicy: found num_pes=5, expected between 1 and the 4 that can be used; "
        "lower it, or take a larger machine"
    )


@pytest.mark.parametrize("shape", [(-1,), (2.0, 3), (True,)])
def test_a_shape_that_is_none_is_refused(shape: Any) -> None:
    with pytest.raises(PlacementError, match="expected ints that are not negative"):
        over_pes(shape, "replicate")


def test_a_pe_without_a_shard_has_no_local_shape() -> None:
    with pytest.raises(PlacementError, match=r"found sip0\.cube0\.pe3, which has no shard"):
        over_pes((2, 4), "row_wise").local_shape(PeCoord(0, 0, 3))


def test_interleaved_blocks_have_no_local_shape() -> None:
    with pytest.raises(PlacementError, match="found the shape of interleaved blocks in sip0"):
        over_pes((64,), Interleave(16)).local_shape(PeCoord(0, 0, 0))


def test_a_sip_and_a_byte_that_are_not_there_are_refused() -> None:
    placement = over_pes((4,), "replicate")
    with pytest.raises(PlacementError, match="sip1, which has no shard"):
        placement.sip_offset(1)
    with pytest.raises(PlacementError, match="found byte 4, expected an offset below 4"):
        placement.owner_of(4)
    with pytest.raises(PlacementError, match="found axis 1, expected one from -1 to 0"):
        placement.local_size(PeCoord(0, 0, 0), 1)


def test_a_table_shows_replicas_in_one_line_and_blocks_by_their_first() -> None:
    policy = DPPolicy(cube="replicate", pe="row_wise", num_cubes=2)
    placement = place("w", (3, 4), float32, policy, TARGETS, page_bytes=64)
    assert placement.describe().splitlines() == [
        "tensor 'w': fp32 3x4, 48 bytes, not global",
        "PEs                 indices     offset  bytes",
        "sip0-1.cube0-1.pe0  [0:2, 0:4]       0     32",
        "sip0-1.cube0-1.pe1  [2:3, 0:4]      32     16",
    ]
    blocks = over_pes((150,), Interleave(16)).describe()
    assert "blocks of [0:150]   0, 64, 1 more     48" in blocks
    assert "a scalar" in over_pes((), "replicate").describe()
