"""Tree all-reduce (``kernbench.ccl.algorithms.tree_allreduce``) on a binary tree of ranks.

Rank r has the children 2r + 1 and 2r + 2. Sums go up to rank 0, the result comes down.
"""

from typing import Any

from tilewright.interop.kernbench.ccl.algorithms import kernel_args, pe_rank, tile_address

__all__ = ("TOPOLOGY", "kernel", "kernel_args")

TOPOLOGY = "tree_binary"


def kernel(
    t_ptr: int,
    n_elem: int,
    world_size: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
    SIP_RANK: int = -1,  # noqa: N803
) -> None:
    """Replace the rank's tile by the sum of all tiles; PEs behind the last rank do nothing.

    ``SIP_RANK`` is the rank where ranks are SIPs; -1: ranks are PEs.
    """
    rank = pe_rank(tl) if SIP_RANK < 0 else SIP_RANK
    if rank >= world_size:
        return
    address = tile_address(t_ptr, rank if SIP_RANK < 0 else 0, n_elem, DTYPE)
    total = tl.load(address, (n_elem,), DTYPE)
    sides = (("child_left", 2 * rank + 1), ("child_right", 2 * rank + 2))
    children = [direction for direction, child in sides if child < world_size]
    for direction in children:
        total = total + tl.recv(dir=direction, shape=(n_elem,), dtype=DTYPE)
    if rank > 0:
        tl.send(dir="parent", src=total)
        total = tl.recv(dir="parent", shape=(n_elem,), dtype=DTYPE)
    for direction in children:
        tl.send(dir=direction, src=total)
    tl.store(address, total)
