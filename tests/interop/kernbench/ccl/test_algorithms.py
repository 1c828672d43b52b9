"""The all-reduce kernels on a mock of the language: sums of every tile, on every rank."""

from itertools import product
from math import isqrt
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.interop.kernbench.ccl.mock_tl import MockTl, MockWorld, Place, Wiring
from tilewright.errors import CollectiveError
from tilewright.interop.kernbench.ccl.algorithms import (
    hierarchical_allreduce,
    intercube_allreduce,
    mesh_allreduce,
    ring_allreduce,
    tree_allreduce,
)

BASE, N_ELEM, NUM_PES = 0x1_0000_0000, 3, 8

Directions = dict[str, Place]


def grid_directions(
    row: int, column: int, rows: int, columns: int, *, wraps: bool, prefix: str = ""
) -> dict[str, tuple[int, int]]:
    """Steps of E, W, S and N on a grid, as (row, column)."""
    steps = {"E": (0, 1), "W": (0, -1), "S": (1, 0), "N": (-1, 0)}
    found = {}
    for name, (down, right) in steps.items():
        to = row + down, column + right
        if wraps:
            to = to[0] % rows, to[1] % columns
        inside = 0 <= to[0] < rows and 0 <= to[1] < columns
        if inside and to != (row, column):
            found[prefix + name] = to
    return found


def place_of(rank: int) -> Place:
    """PE ranks in the order of coordinates of one SIP."""
    return 0, rank // NUM_PES, rank % NUM_PES


def ring_wiring(size: int) -> Wiring:
    return {
        place_of(rank): {"E": place_of((rank + 1) % size), "W": place_of((rank - 1) % size)}
        for rank in range(size)
    }


def mesh_wiring(size: int) -> Wiring:
    side = isqrt(size)
    return {
        place_of(row * side + column): {
            name: place_of(to[0] * side + to[1])
            for name, to in grid_directions(row, column, side, side, wraps=True).items()
        }
        for row, column in product(range(side), repeat=2)
    }


def tree_wiring(size: int) -> Wiring:
    wiring: dict[Place, Directions] = {place_of(rank): {} for rank in range(size)}
    for rank in range(1, size):
        parent = (rank - 1) // 2
        wiring[place_of(rank)]["parent"] = place_of(parent)
        side = "child_left" if rank == 2 * parent + 1 else "child_right"
        wiring[place_of(parent)][side] = place_of(rank)
    return wiring


def run_on_pes(module: ModuleType, wiring: Wiring, size: int) -> tuple[Any, list[Any]]:
    """Run a kernel of the early form on one SIP; return tiles before and after, by rank."""
    world = MockWorld(wiring, NUM_PES, num_cubes=16)
    tiles = np.random.default_rng(size).integers(-8, 8, (size, N_ELEM)).astype(np.float64)
    for rank in range(size):
        world.tiles[0, BASE + rank * N_ELEM * 2] = tiles[rank]
    arguments = module.kernel_args(size, N_ELEM)
    assert arguments == (N_ELEM, size)
    world.run(lambda tl: module.kernel(BASE, *arguments, tl), [place_of(r) for r in range(size)])
    return tiles, [world.tiles[0, BASE + rank * N_ELEM * 2] for rank in range(size)]


@pytest.mark.parametrize("size", range(1, 17))
def test_a_ring_leaves_the_sum_of_all_tiles_on_every_rank(size: int) -> None:
    tiles, after = run_on_pes(ring_allreduce, ring_wiring(size), size)
    np.testing.assert_array_equal(after, [tiles.sum(0)] * size)


@pytest.mark.parametrize("size", range(1, 17))
def test_a_tree_leaves_the_sum_of_all_tiles_on_every_rank(size: int) -> None:
    tiles, after = run_on_pes(tree_allreduce, tree_wiring(size), size)
    np.testing.assert_array_equal(after, [tiles.sum(0)] * size)


@pytest.mark.parametrize("side", range(1, 5))
def test_a_mesh_leaves_the_sum_of_all_tiles_on_every_rank(side: int) -> None:
    tiles, after = run_on_pes(mesh_allreduce, mesh_wiring(side**2), side**2)
    np.testing.assert_array_equal(after, [tiles.sum(0)] * side**2)


def test_a_mesh_of_ranks_that_are_no_square_is_refused() -> None:
    with pytest.raises(CollectiveError, match="found world_size=6, expected a square number"):
        mesh_allreduce.kernel_args(6, 8)


def test_a_tree_takes_the_rank_of_a_sip_from_its_launch() -> None:
    size = 5
    wiring = {
        (rank, 0, 0): {name: (to[1] * NUM_PES + to[2], 0, 0) for name, to in directions.items()}
        for rank, directions in enumerate(tree_wiring(size).values())
    }
    world = MockWorld(wiring, 1, num_cubes=1)
    tiles = np.arange(size * N_ELEM, dtype=np.float64).reshape(size, N_ELEM)
    for rank in range(size):
        world.tiles[rank, BASE] = tiles[rank]
    world.run(
        lambda tl: tree_allreduce.kernel(BASE, N_ELEM, size, tl, SIP_RANK=tl.place[0]),
        list(wiring),
    )
    np.testing.assert_array_equal(
        [world.tiles[rank, BASE] for rank in range(size)], [tiles.sum(0)] * size
    )


def hierarchical_wiring(sips: int, cubes: int, pes: int) -> Wiring:
    wiring: dict[Place, Directions] = {}
    for sip, cube, pe in product(range(sips), range(cubes), range(pes)):
        grid = grid_directions(cube, pe, cubes, pes, wraps=True)
        directions = {name: (sip, *to) for name, to in grid.items()}
        if sips > 1:
            directions["global_E"] = ((sip + 1) % sips, cube, pe)
            directions["global_W"] = ((sip - 1) % sips, cube, pe)
        wiring[sip, cube, pe] = directions
    return wiring


@pytest.mark.parametrize(("sips", "cubes", "pes"), [(1, 1, 8), (1, 3, 8), (2, 4, 4), (3, 2, 2)])
def test_three_levels_of_rings_leave_the_sum_of_all_tiles_on_every_rank(
    sips: int, cubes: int, pes: int
) -> None:
    wiring = hierarchical_wiring(sips, cubes, pes)
    world = MockWorld(wiring, pes, cubes)
    tiles = np.random.default_rng(0).integers(-8, 8, (len(wiring), N_ELEM)).astype(np.float64)
    places = {place: BASE + (place[1] * pes + place[2]) * N_ELEM * 2 for place in wiring}
    for (place, address), tile in zip(places.items(), tiles, strict=True):
        world.tiles[place[0], address] = tile
    arguments = hierarchical_allreduce.kernel_args(len(wiring), N_ELEM)
    world.run(lambda tl: hierarchical_allreduce.kernel(BASE, *arguments, tl), list(wiring))
    for place, address in places.items():
        np.testing.assert_array_equal(world.tiles[place[0], address], tiles.sum(0))


def intercube_wiring(kind: str, sips: tuple[int, int], cubes: tuple[int, int]) -> Wiring:
    """Columns and rows of SIPs and of cubes; PE 0 of each cube."""
    (sip_w, sip_h), (cube_w, cube_h) = sips, cubes
    num_sips = sip_w * sip_h
    wiring: dict[Place, Directions] = {}
    for sip, row, column in product(range(num_sips), range(cube_h), range(cube_w)):
        cube = row * cube_w + column
        inside = grid_directions(row, column, cube_h, cube_w, wraps=False)
        directions: Directions = {
            name: (sip, to[0] * cube_w + to[1], 0) for name, to in inside.items()
        }
        if kind == "ring_1d":
            if num_sips > 1:
                directions["global_E"] = ((sip + 1) % num_sips, cube, 0)
                directions["global_W"] = ((sip - 1) % num_sips, cube, 0)
        else:
            wraps = kind != "mesh_2d_no_wrap"
            at = divmod(sip, sip_w)
            outside = grid_directions(*at, sip_h, sip_w, wraps=wraps, prefix="global_")
            directions |= {name: (to[0] * sip_w + to[1], cube, 0) for name, to in outside.items()}
        wiring[sip, cube, 0] = directions
    return wiring


@pytest.mark.parametrize("kind", intercube_allreduce.SIP_TOPOLOGY_KINDS)
@pytest.mark.parametrize("sips", [(1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("cubes", [(1, 1), (2, 1), (4, 2), (3, 3), (4, 4)])
def test_a_centre_root_leaves_the_sum_over_cubes_and_sips_on_every_cube(
    kind: str, sips: tuple[int, int], cubes: tuple[int, int]
) -> None:
    wiring = intercube_wiring(kind, sips, cubes)
    world = MockWorld(wiring, NUM_PES, num_cubes=16)
    tiles = np.random.default_rng(1).integers(-8, 8, (len(wiring), N_ELEM)).astype(np.float64)
    for (sip, cube, _), tile in zip(wiring, tiles, strict=True):
        world.tiles[sip, BASE + cube * N_ELEM * 2] = tile

    def program(tl: MockTl) -> None:
        arguments = intercube_allreduce.kernel_args(
            sips[0] * sips[1], N_ELEM, cube_w=cubes[0], cube_h=cubes[1], sip_rank=tl.place[0],
            sip_topo_kind=intercube_allreduce.SIP_TOPOLOGY_KINDS[kind],
            sip_topo_w=sips[0], sip_topo_h=sips[1],
        )  # fmt: skip
        kernel: Any = intercube_allreduce.kernel
        kernel(BASE, *arguments, tl)

    world.run(program, list(wiring))
    for tile in world.tiles.values():
        np.testing.assert_array_equal(tile, tiles.sum(0))


def test_the_root_of_a_mesh_of_4_by_4_cubes_is_cube_10() -> None:
    """KernBench's root: the one cube that talks to other SIPs."""
    wiring = {
        place: {
            name: to for name, to in directions.items() if "global" not in name or place[1] == 10
        }
        for place, directions in intercube_wiring("ring_1d", (2, 1), (4, 4)).items()
    }
    world = MockWorld(wiring, NUM_PES, num_cubes=16)
    for sip, cube, _ in wiring:
        world.tiles[sip, BASE + cube * N_ELEM * 2] = np.ones(N_ELEM)
    world.run(
        lambda tl: intercube_allreduce.kernel(BASE, N_ELEM, 4, 4, 2, tl.place[0], 0, 2, 1, tl),
        list(wiring),
    )
    assert all((tile == 32).all() for tile in world.tiles.values())
