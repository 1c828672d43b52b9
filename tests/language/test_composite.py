"""Tiles cover every place once and never leave the axes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import KernelTypeError
from tilewright.language.composite import parts_of_operand, plan_tiles
from tilewright.language.pointer import Part

extents = st.integers(1, 70)
sizes = st.integers(1, 40)


@given(extents, extents, extents, sizes, sizes, sizes)
def test_tiles_of_the_result_cover_every_place_once(
    m: int, n: int, k: int, tile_m: int, tile_n: int, tile_k: int
) -> None:
    tiling = plan_tiles((m, n, k), (tile_m, tile_n, tile_k))
    seen = np.zeros((m, n), int)
    for row, column in product(tiling.rows, tiling.columns):
        seen[row.slice, column.slice] += 1
        assert row.size <= tile_m
        assert column.size <= tile_n
    assert (seen == 1).all()
    assert len(tiling.rows) * len(tiling.columns) == -(-m // tile_m) * -(-n // tile_n)
    assert [part.start for part in tiling.depths] == list(range(0, k, tile_k))
    assert sum(part.size for part in tiling.depths) == k


@given(extents, extents, st.data())
def test_parts_of_an_operand_are_what_broadcasting_would_meet(
    m: int, n: int, data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from([(m, n), (1, n), (m, 1), (1, 1), (n,), (1,), ()]))
    operand = np.arange(int(np.prod(shape))).reshape(shape)
    row = Part(data.draw(st.integers(0, m - 1)), 1)
    column = Part(data.draw(st.integers(0, n - 1)), 1)
    found = operand[tuple(part.slice for part in parts_of_operand(shape, (row, column)))]
    expected = np.broadcast_to(operand, (m, n))[row.slice, column.slice]
    assert np.broadcast_to(found, (1, 1)) == expected


def test_a_tile_without_places_is_refused() -> None:
    with pytest.raises(KernelTypeError, match="found 0 as the N of a tile"):
        plan_tiles((8, 8, 8), (4, 0, 4))
