"""All-reduce of one tile a PE over installed rings: a ring, several cubes, a mesh, a tree."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from tilewright import language as tl
from tilewright.collectives.direction import Topology
from tilewright.errors import BenchError
from tilewright.host import LocalShard, RuntimeContext
from tilewright.programs.bound import Path, Work
from tilewright.programs.builtin.collective import F32_BYTES, Buffer
from tilewright.programs.contract import BenchOutcome, BenchProgram, measured
from tilewright.programs.inputs import Team, check_sizes, deploy, small_integers, team_of
from tilewright.programs.parameter import (
    Changes,
    Offer,
    ProgramFit,
    Slot,
    Values,
    fit_slot,
    fit_team,
)
from tilewright.runtime.launch.bind import PerPe
from tilewright.units import PS_PER_US

Ranks = Annotated[int, "PEs that take part, cube by cube"]
TileBytes = Annotated[int, "of a PE's tile, in f32"]

RINGS_IN_A_RING, RINGS_IN_A_TREE, RINGS_IN_A_MESH = 2, 3, 4  # that end at one PE, at most


def ring_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Send the tile that came last on to the east and add the one from the west, ranks - 1 times.

    The ranks are the columns of one row.
    """
    del rank, rows
    total = tile = tl.load(ptr, shape=(elements,))
    for _ in range(columns - 1):
        tl.send("E", tile)
        tile = tl.recv("W", (elements,), tile.dtype)
        total = total + tile
    tl.store(ptr, total)


def ring_sum_kernel_in_turns(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Do as ring_sum_kernel, with one command under way a PE: rank 0 receives before it sends.

    Otherwise all ranks wait for room in a ring, if a tile is longer than that.
    """
    del rows
    total = tile = tl.load(ptr, shape=(elements,))
    for _ in range(columns - 1):
        if rank > 0:
            tl.send("E", tile)
        before = tl.recv("W", (elements,), tile.dtype)
        if rank == 0:
            tl.send("E", tile)
        tile = before
        total = total + tile
    tl.store(ptr, total)


def mesh_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Add up the rows of a mesh, then its columns."""
    tile = tl.load(ptr, shape=(elements,))
    row = _line_sum(tile, rank % columns, columns, ("W", "E"))
    tl.store(ptr, _line_sum(row, rank // columns, rows, ("N", "S")))


def mesh_sum_kernel_in_turns(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Do as mesh_sum_kernel, with one command under way a PE: sums pass one way, then the other."""
    tile = tl.load(ptr, shape=(elements,))
    row = _line_sum_in_turns(tile, rank % columns, columns, ("W", "E"))
    tl.store(ptr, _line_sum_in_turns(row, rank // columns, rows, ("N", "S")))


def tree_sum_kernel(ptr: Any, elements: int, rank: int, rows: int, columns: int) -> None:
    """Send sums up to rank 0 and the result down; the ranks are the columns of one row."""
    del rows
    sides = (("child_left", 2 * rank + 1), ("child_right", 2 * rank + 2))
    below = [direction for direction, child in sides if child < columns]
    total = tl.load(ptr, shape=(elements,))
    for direction in below:
        total = total + tl.recv(direction, (elements,), total.dtype)
    if rank > 0:
        tl.send("parent", total)
        total = tl.recv("parent", (elements,), total.dtype)
    for direction in below:
        tl.send(direction, total)
    tl.store(ptr, total)


def _line_sum(tile: Any, place: int, length: int, ways: tuple[str, str]) -> Any:
    """Return the sum of a line with open ends: partial sums pass from each end to the other."""
    neighbours = {0: place > 0, 1: place < length - 1}
    for back, ahead in ((0, 1), (1, 0)):
        if neighbours[ahead] and not neighbours[back]:
            tl.send(ways[ahead], tile)  # an end begins, so that both sums are under way at once
    total = tile
    for back, ahead in ((0, 1), (1, 0)):
        if neighbours[back]:
            before = tl.recv(ways[back], tile.shape, tile.dtype)
            if neighbours[ahead]:
                tl.send(ways[ahead], before + tile)
            total = total + before
    return total


def _line_sum_in_turns(tile: Any, place: int, length: int, ways: tuple[str, str]) -> Any:
    """Return the sum of a line: partial sums reach its last place before any of them return."""
    total = tile
    for back, ahead, is_first, is_last in (
        (*ways, place == 0, place == length - 1),
        (*ways[::-1], place == length - 1, place == 0),
    ):
        passed = tile
        if not is_first:
            before = tl.recv(back, tile.shape, tile.dtype)
            total, passed = total + before, before + tile
        if not is_last:
            tl.send(ahead, passed)
    return total


_KERNELS: dict[Topology, tuple[Callable[..., None], Callable[..., None]]] = {
    Topology.RING_1D: (ring_sum_kernel, ring_sum_kernel_in_turns),
    Topology.MESH_2D_NO_WRAP: (mesh_sum_kernel, mesh_sum_kernel_in_turns),
    Topology.TREE_BINARY: (tree_sum_kernel, tree_sum_kernel),
}
"""By the rings that are installed; the second is for PEs that have one command under way."""


def _sum_tiles(
    torch: RuntimeContext,
    name: str,
    topology: Topology,
    shape: tuple[int, int],
    tile_bytes: int,
    buffer: str,
    slot: int,
) -> BenchOutcome:
    """Sum tiles of PEs in the order of their coordinates, row by row of ``shape``."""
    rows, columns = shape
    ranks, elements = rows * columns, tile_bytes // F32_BYTES
    if elements < 1:
        expected = f"at least the {F32_BYTES} of one element"
        raise BenchError(name, f"bytes={tile_bytes}", expected, "set it higher")
    values = small_integers(torch, (ranks, elements))
    tiles = deploy(torch, "tiles", values, _team(torch, name, ranks).split(0))
    pes = tiles.placement.homes
    torch.install_ipcq(
        rank_to_pe=[(pe.sip, pe.cube, pe.pe) for pe in pes], topology=topology,
        w=columns, h=rows, buffer_kind=buffer, slot_size=slot,
    )  # fmt: skip
    kernel = _KERNELS[topology][torch.machine.spec.pe.queue_commands == 1]
    places = PerPe({pe: rank for rank, pe in enumerate(pes)})
    report = torch.launch(kernel, LocalShard(tiles), elements, places, *shape).report
    num_cubes = len({(pe.sip, pe.cube) for pe in pes})
    cubes = "one cube" if num_cubes == 1 else f"{num_cubes} cubes"
    ends = report.pes[0], report.pes[-1]
    pairs = tuple((sender, pe) for sender in ends for pe in report.pes if pe != sender)
    opens = buffer != "hbm"  # where messages are written to slices before anybody reads them
    sent_bytes = 2 * (ranks - 1) * values[0].nbytes // ranks  # all but a rank's share, twice
    sent_ps = sent_bytes * PS_PER_US // torch.machine.spec.cube.noc.attach_bytes_per_us
    return measured(
        torch,
        report,
        Work(num_pes=ranks, read_bytes=values.nbytes, written_bytes=values.nbytes),
        lambda: float(np.abs(tiles.numpy(timed=False) - values.sum(0)).max()),
        tolerance=0.0,
        # everybody's sum depends on everybody's tile, so on that of the first and the last PE
        path=Path(pes=report.pes, computes=ranks > 1, opens=opens, messages=pairs),
        messages={"messages": (sent_ps, 0)},
        notes=(f"{ranks} PEs of {cubes}, slots of the rings in {buffer.upper()}",),
    )


def _team(torch: RuntimeContext, name: str, ranks: int) -> Team:
    """Return the fewest cubes of one SIP that have a PE for each rank."""
    grid = torch.machine.grid
    num_pes = grid.num_cubes_per_sip * grid.num_pes_per_cube
    if ranks > num_pes:
        expected, fix = f"at most the {num_pes} of a SIP", "take fewer, or a larger machine"
        raise BenchError(name, f"{ranks} PEs", expected, fix)
    num_cubes = -(-ranks // grid.num_pes_per_cube)
    return team_of(torch, cubes=num_cubes, pes=min(ranks, grid.num_pes_per_cube))


def _line_program(
    name: str, summary: str, topology: Topology, ranks: int, num_rings: int
) -> BenchProgram:
    """Return a program of ranks in one row."""

    def run(
        torch: RuntimeContext,
        ranks: Ranks = ranks,
        bytes: TileBytes = 4096,
        buffer: Buffer = "tcm",
        slot: Slot = 4096,
    ) -> BenchOutcome:
        check_sizes(name, ranks=ranks, slot=slot)
        return _sum_tiles(torch, name, topology, (1, ranks), bytes, buffer, slot)

    def counts(offer: Offer, values: Values) -> Changes:
        num_pes = offer.cubes * offer.pes
        fewer: Changes = {"ranks": num_pes} if int(values["ranks"]) > num_pes else {}
        return fewer | fit_slot(offer, values, num_rings)

    return BenchProgram(name, summary, run, fit=_fit(counts))


def _fit(counts: Callable[[Offer, Values], Changes]) -> ProgramFit:
    return ProgramFit(counts=counts, tiles=(("bytes",),), sizes=(("bytes",),))


def _run_cubes(
    torch: RuntimeContext,
    cubes: Annotated[int, "cubes of a SIP whose PEs take part; 0: all"] = 2,
    bytes: TileBytes = 4096,
    buffer: Buffer = "tcm",
    slot: Slot = 4096,
) -> BenchOutcome:
    name = "allreduce_cubes"
    check_sizes(name, slot=slot)
    shape = (1, team_of(torch, cubes=cubes).num_pes)
    return _sum_tiles(torch, name, Topology.RING_1D, shape, bytes, buffer, slot)


def _run_mesh(
    torch: RuntimeContext,
    rows: Annotated[int, "of PEs"] = 2,
    columns: Annotated[int, "of PEs"] = 2,
    bytes: TileBytes = 4096,
    buffer: Buffer = "tcm",
    slot: Slot = 4096,
) -> BenchOutcome:
    name, shape = "allreduce_mesh", (rows, columns)
    check_sizes(name, rows=rows, columns=columns, slot=slot)
    return _sum_tiles(torch, name, Topology.MESH_2D_NO_WRAP, shape, bytes, buffer, slot)


def _fit_cubes(offer: Offer, values: Values) -> Changes:
    return fit_team(offer, values) | fit_slot(offer, values, RINGS_IN_A_RING)


def _fit_mesh(offer: Offer, values: Values) -> Changes:
    """Return a mesh with no more rows and columns than a SIP has PEs for."""
    num_pes, rows = offer.cubes * offer.pes, int(values["rows"])
    rings = fit_slot(offer, values, RINGS_IN_A_MESH)
    if rows * int(values["columns"]) <= num_pes:
        return rings
    rows = min(rows, max(1, num_pes // 2))
    return {"rows": rows, "columns": num_pes // rows, **rings}


PROGRAMS = (
    _line_program(
        "allreduce_ring",
        "sum of the tiles of 8 PEs around a ring, its slots in TCM, SRAM or HBM",
        Topology.RING_1D,
        8,
        RINGS_IN_A_RING,
    ),
    BenchProgram(
        "allreduce_cubes",
        "sum of the tiles of all PEs of several cubes, around one ring",
        _run_cubes,
        fit=_fit(_fit_cubes),
    ),
    BenchProgram(
        "allreduce_mesh",
        "sum of the tiles of a 2 x 2 mesh of PEs, rows and then columns",
        _run_mesh,
        fit=_fit(_fit_mesh),
    ),
    _line_program(
        "allreduce_tree",
        "sum of the tiles of 7 PEs, up and down a binary tree",
        Topology.TREE_BINARY,
        7,
        RINGS_IN_A_TREE,
    ),
)
