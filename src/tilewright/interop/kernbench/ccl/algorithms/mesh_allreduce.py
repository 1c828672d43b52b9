"""Mesh all-reduce (``kernbench.ccl.algorithms.mesh_allreduce``) on a square of ranks.

The rows of the square are rings, then the columns. KernBench's name ``mesh_2d`` runs a torus, so
directions wrap around.
"""

from math import isqrt
from typing import Any

from tilewright.errors import CollectiveError
from tilewright.interop.kernbench.ccl.algorithms import pe_rank, ring_sum, tile_address

TOPOLOGY = "mesh_2d"


def kernel_args(world_size: int, n_elem: int) -> tuple[int, int]:
    """Return the kernel's arguments behind the tensor; a world that is no square is refused.

    >>> kernel_args(4, 64)
    (64, 4)
    """
    if isqrt(world_size) ** 2 != world_size:
        fix = "set world_size to a square, or use ring_allreduce"
        found = f"world_size={world_size}"
        raise CollectiveError("mesh_allreduce", found, "a square number of ranks", fix)
    return n_elem, world_size


def kernel(t_ptr: int, n_elem: int, world_size: int, tl: Any, DTYPE: str = "f16") -> None:  # noqa: N803
    """Replace the rank's tile by the sum of all tiles; PEs behind the last rank do nothing."""
    rank, side = pe_rank(tl), isqrt(world_size)
    if rank >= world_size:
        return
    address = tile_address(t_ptr, rank, n_elem, DTYPE)
    tile = tl.load(address, (n_elem,), DTYPE)
    row_sum = ring_sum(tl, tile, side, ahead="E", behind="W")
    tl.store(address, ring_sum(tl, row_sum, side, ahead="S", behind="N"))
