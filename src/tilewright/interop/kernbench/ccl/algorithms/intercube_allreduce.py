"""Centre-root all-reduce (``kernbench.ccl.algorithms.intercube_allreduce``) in five phases.

PE 0 of each cube takes part, with one tile a cube: reduce along rows of cubes, reduce along the
root's column to the root cube, exchange between SIPs there, broadcast along the column, broadcast
along rows. The root cube is the centre of the mesh (cube 10 of 4 x 4). A tensor on one cube has a
mesh of 1 x 1, so only the exchange between SIPs is left.

Public material says that the kernel takes nine arguments and ``tl``, and not which. Here they are
the tensor, its elements a tile, columns and rows of cubes, the number of SIPs, the own SIP's rank,
and kind, columns and rows of the exchange between SIPs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tilewright.interop.kernbench.ccl.algorithms import (
    Line,
    broadcast_from,
    reduce_to,
    ring_sum,
    tile_address,
)

TOPOLOGY = "intercube"

RING_1D = 0  # n - 1 rounds of whole tiles
TORUS_2D = 1  # a ring in each row, then a ring in each column
MESH_2D_NO_WRAP = 2  # chains: reduce and broadcast in each row, then in each column

SIP_TOPOLOGY_KINDS: Mapping[str, int] = MappingProxyType(
    {
        "ring_1d": RING_1D,
        "torus_2d": TORUS_2D,
        "mesh_2d": TORUS_2D,  # as in KernBench
        "mesh_2d_no_wrap": MESH_2D_NO_WRAP,
    }
)


def kernel_args(
    world_size: int,
    n_elem: int,
    *,
    cube_w: int,
    cube_h: int,
    sip_rank: int,
    sip_topo_kind: int,
    sip_topo_w: int,
    sip_topo_h: int,
) -> tuple[int, ...]:
    """Return the kernel's eight arguments behind the tensor; ranks are SIPs."""
    mesh = (cube_w, cube_h)
    return (n_elem, *mesh, world_size, sip_rank, sip_topo_kind, sip_topo_w, sip_topo_h)


def kernel(
    t_ptr: int,
    n_elem: int,
    cube_w: int,
    cube_h: int,
    n_sips: int,
    sip_rank: int,
    sip_topo_kind: int,
    sip_topo_w: int,
    sip_topo_h: int,
    tl: Any,
    DTYPE: str = "f16",  # noqa: N803
) -> None:
    """Replace the cube's tile by the sum over all cubes of all SIPs."""
    if tl.program_id(0) != 0:
        return
    cube = tl.program_id(1) if cube_w * cube_h > 1 else 0
    row, column = divmod(cube, cube_w)
    along_row = Line(column, cube_w, cube_w // 2, "W", "E")
    along_column = Line(row, cube_h, cube_h // 2, "N", "S")
    address = tile_address(t_ptr, cube, n_elem, DTYPE)
    total = reduce_to(tl, tl.load(address, (n_elem,), DTYPE), along_row)
    if along_row.toward is None:
        total = reduce_to(tl, total, along_column)
        if along_column.toward is None:
            shape = sip_topo_w, sip_topo_h
            total = _exchange_sips(tl, total, n_sips, sip_rank, sip_topo_kind, shape)
        total = broadcast_from(tl, total, along_column)
    tl.store(address, broadcast_from(tl, total, along_row))


def _exchange_sips(
    tl: Any, block: Any, n_sips: int, sip_rank: int, kind: int, shape: tuple[int, int]
) -> Any:
    """Return the sum over the root cubes of all SIPs; ``shape`` is columns and rows of SIPs."""
    if kind == RING_1D:
        return ring_sum(tl, block, n_sips, ahead="global_E", behind="global_W")
    columns, rows = shape
    row, column = divmod(sip_rank, columns)
    if kind == TORUS_2D:
        row_sum = ring_sum(tl, block, columns, ahead="global_E", behind="global_W")
        return ring_sum(tl, row_sum, rows, ahead="global_S", behind="global_N")
    lines = (
        Line(column, columns, 0, "global_W", "global_E"),
        Line(row, rows, 0, "global_N", "global_S"),
    )
    for line in lines:
        block = broadcast_from(tl, reduce_to(tl, block, line), line)
    return block
