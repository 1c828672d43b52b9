import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import SpecError
from tilewright.machine.coords import HARDWARE_AXES, CubeCoord, Grid, PeCoord, Side, place_on_axis

counts = st.integers(1, 5)
grids = st.builds(Grid, counts, counts, counts, counts)
pe_coords = st.builds(PeCoord, st.integers(0, 1), st.integers(0, 3), st.integers(0, 7))


@given(grid=grids, data=st.data())
def test_flattening_a_place_and_back_changes_nothing(grid: Grid, data: st.DataObject) -> None:
    flat = data.draw(st.integers(0, grid.num_pes - 1))
    assert grid.flat(grid.coord(flat)) == flat
    cube = data.draw(st.integers(0, grid.num_cubes - 1))
    assert grid.flat_cube(grid.cube_coord(cube)) == cube


@given(grid=grids)
def test_pes_and_cubes_are_listed_in_the_order_of_their_numbers(grid: Grid) -> None:
    assert [grid.flat(coord) for coord in grid.pes()] == list(range(grid.num_pes))
    assert list(grid.pes()) == sorted(grid.pes())
    assert [grid.flat_cube(coord) for coord in grid.cubes()] == list(range(grid.num_cubes))


@given(grid=grids, data=st.data())
def test_a_neighbours_neighbour_on_the_opposite_side_is_the_cube_itself(
    grid: Grid, data: st.DataObject
) -> None:
    coord = grid.cube_coord(data.draw(st.integers(0, grid.num_cubes - 1)))
    column, row = grid.cell(coord)
    for side in Side:
        neighbour = grid.neighbour(coord, side)
        step = side.step
        if neighbour is None:
            at_edge = {
                Side.NORTH: row == 0,
                Side.SOUTH: row == grid.rows - 1,
                Side.WEST: column == 0,
                Side.EAST: column == grid.columns - 1,
            }
            assert at_edge[side]
        else:
            assert grid.cell(neighbour) == (column + step[0], row + step[1])
            assert grid.neighbour(neighbour, side.opposite) == coord


def test_cubes_count_along_rows_from_the_north() -> None:
    grid = Grid(2, 4, 3, 8)
    assert grid.cell(CubeCoord(1, 6)) == (2, 1)
    assert grid.cube_in_cell(1, 2, 1) == CubeCoord(1, 6)
    assert grid.neighbour(CubeCoord(1, 6), Side.SOUTH) == CubeCoord(1, 10)


@pytest.mark.parametrize("coord", [PeCoord(2, 0, 0), PeCoord(0, 12, 0), PeCoord(0, 0, 8)])
def test_a_place_that_the_machine_lacks_is_refused(coord: PeCoord) -> None:
    with pytest.raises(SpecError, match="name a place of this machine"):
        Grid(2, 4, 3, 8).flat(coord)


def test_a_level_without_members_is_refused() -> None:
    with pytest.raises(SpecError, match=r"grid rows: found 0, expected an int of at least 1"):
        Grid(1, 1, 0, 1)


@given(st.sets(pe_coords, min_size=1))
def test_places_of_a_launch_tell_its_pes_apart_and_lie_below_their_counts(
    used: set[PeCoord],
) -> None:
    places = {tuple(place_on_axis(pe, used, axis)[0] for axis in HARDWARE_AXES) for pe in used}
    assert len(places) == len(used)
    for pe in used:
        for axis in HARDWARE_AXES:
            place, count = place_on_axis(pe, used, axis)
            assert 0 <= place < count
