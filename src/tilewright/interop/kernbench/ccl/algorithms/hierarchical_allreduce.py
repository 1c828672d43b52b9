"""Hierarchical all-reduce (``kernbench.ccl.algorithms.hierarchical_allreduce``) in three levels.

Every PE is a rank. PEs of a cube form a ring (E, W), then PEs of the same number in the cubes of a
SIP (S, N), then PEs of the same cube and number in all SIPs (global_E, global_W).
"""

from typing import Any

from tilewright.interop.kernbench.ccl.algorithms import kernel_args, pe_rank, ring_sum, tile_address

__all__ = ("TOPOLOGY", "kernel", "kernel_args")

TOPOLOGY = "hierarchical"


def kernel(t_ptr: int, n_elem: int, world_size: int, tl: Any, DTYPE: str = "f16") -> None:  # noqa: N803
    """Replace the rank's tile by the sum of all tiles.

    A world of fewer ranks than a SIP has PEs is that many whole cubes of one SIP.
    """
    num_pes = min(world_size, tl.num_programs(0))
    num_cubes = min(world_size // num_pes, tl.num_programs(1))
    num_sips = world_size // (num_pes * num_cubes)
    address = tile_address(t_ptr, pe_rank(tl), n_elem, DTYPE)
    total = tl.load(address, (n_elem,), DTYPE)
    total = ring_sum(tl, total, num_pes, ahead="E", behind="W")
    total = ring_sum(tl, total, num_cubes, ahead="S", behind="N")
    total = ring_sum(tl, total, num_sips, ahead="global_E", behind="global_W")
    tl.store(address, total)
