"""Ring all-reduce (``kernbench.ccl.algorithms.ring_allreduce``): every rank forwards whole tiles.

A rank is a PE, or a SIP with one tile. In ``world_size - 1`` rounds each rank sends the tile that
it received last to the east and adds the one that comes from the west.
"""

from typing import Any

from tilewright.interop.kernbench.ccl.algorithms import kernel_args, pe_rank, ring_sum, tile_address

__all__ = ("TOPOLOGY", "kernel", "kernel_args")

TOPOLOGY = "ring_1d"


def kernel(t_ptr: int, n_elem: int, world_size: int, tl: Any, DTYPE: str = "f16") -> None:  # noqa: N803
    """Replace the rank's tile by the sum of all tiles; PEs behind the last rank do nothing."""
    rank = pe_rank(tl)
    if rank >= world_size:
        return
    address = tile_address(t_ptr, rank, n_elem, DTYPE)
    tile = tl.load(address, (n_elem,), DTYPE)
    tl.store(address, ring_sum(tl, tile, world_size, ahead="E", behind="W"))
