from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.executor.layout import layout_of, runs_of_addresses
from tilewright.language.affine import Affine, Box

MEMORY = np.arange(4096, dtype=np.uint8) * 7 % 251
START = 2048  # so that negative strides stay inside
ITEM = np.dtype(np.uint16)


@st.composite
def accesses(draw: st.DrawFn) -> tuple[Affine, Box]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=3)))
    strides = tuple(draw(st.integers(-12, 12)) * ITEM.itemsize for _ in shape)
    low = tuple(draw(st.integers(0, extent - 1)) for extent in shape)
    high = tuple(
        draw(st.integers(first + 1, extent)) for first, extent in zip(low, shape, strict=True)
    )
    return Affine(START, strides, shape), Box(low, high, shape)


def bytes_of(affine: Affine, box: Box) -> tuple[Any, np.ndarray[Any, Any]]:
    layout = layout_of(affine, box, ITEM.itemsize)
    segments = [
        MEMORY[start : start + layout.segment_bytes]
        for row in layout.rows
        for start in range(
            affine.base + row.address,
            affine.base + row.address + row.num_segments * row.stride_bytes,
            row.stride_bytes,
        )
    ]
    return layout, np.stack(segments)


def elements_at(addresses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    pairs = np.stack([MEMORY[addresses], MEMORY[addresses + 1]], axis=-1)
    return np.ascontiguousarray(pairs).view(ITEM)[..., 0]


@given(accesses())
def test_what_is_gathered_is_what_lies_at_the_addresses(access: tuple[Affine, Box]) -> None:
    affine, box = access
    layout, data = bytes_of(affine, box)
    inside = tuple(map(slice, box.low, box.high))
    expected = elements_at(affine.array(np.dtype(np.int64)))[inside]
    np.testing.assert_array_equal(layout.gather(data, ITEM), expected)
    assert data.shape == (layout.num_segments, layout.segment_bytes)
    assert layout.num_bytes == data.size


@given(accesses())
def test_scattering_puts_elements_where_gathering_finds_them(access: tuple[Affine, Box]) -> None:
    affine, box = access
    layout, data = bytes_of(affine, box)
    elements = layout.gather(data, ITEM)
    np.testing.assert_array_equal(layout.scatter(elements), data)


def test_neighbouring_rows_are_one_segment() -> None:
    layout = layout_of(Affine(0, (64, 2), (8, 32)), Box.whole((8, 32)), 2)
    assert (layout.segment_bytes, layout.num_segments) == (512, 1)


def test_rows_of_a_wider_matrix_are_segments_at_its_stride() -> None:
    layout = layout_of(Affine(0, (2048, 4), (64, 32)), Box.whole((64, 32)), 4)
    (row,) = layout.rows
    assert (layout.segment_bytes, row.num_segments, row.stride_bytes) == (128, 64, 2048)


def test_a_transposed_tile_is_read_as_it_lies() -> None:
    layout = layout_of(Affine(0, (4, 256), (64, 16)), Box.whole((64, 16)), 4)
    assert layout.segment_bytes == 64 * 4 * 16
    assert layout.axes == (1, 0)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20))
def test_runs_of_single_elements_cover_them_in_order(places: list[int]) -> None:
    addresses = np.array(places, np.int64) * 4
    covered = [
        address + step
        for _, address, size in runs_of_addresses(addresses, 4)
        for step in range(0, size, 4)
    ]
    assert covered == addresses.tolist()
    firsts = [place for place, _, _ in runs_of_addresses(addresses, 4)]
    assert [addresses[first] for first in firsts] == [
        address for _, address, _ in runs_of_addresses(addresses, 4)
    ]
