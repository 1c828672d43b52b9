"""All-reduce of one tile a PE, by shape of the rings: a ring, several cubes, a mesh, a tree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tilewright.collectives.direction import Topology
from tilewright.errors import BenchError
from tilewright.host import LocalShard, PeCoord, RuntimeContext
from tilewright.machine.build import Machine
from tilewright.programs.bound import Work, bound_of
from tilewright.programs.contract import BenchOutcome, BenchProgram, Bound
from tilewright.programs.draw import small_integers
from tilewright.programs.exchange import F32_BYTES, Buffer
from tilewright.programs.fit import (
    Changes,
    Offer,
    ProgramFit,
    Slot,
    Values,
    fit_slot,
    fit_team,
)
from tilewright.programs.kernels.tile_sum import (
    mesh_sum_kernel,
    mesh_sum_kernel_in_turns,
    ring_sum_kernel,
    ring_sum_kernel_in_turns,
    tree_sum_kernel,
)
from tilewright.programs.latency import Path
from tilewright.programs.size import check_sizes
from tilewright.programs.team import Team, deploy, team_of
from tilewright.runtime.launch.bind import PerPe
from tilewright.units import PS_PER_US

Ranks = Annotated[int, "PEs that take part, cube by cube"]
TileBytes = Annotated[int, "of a PE's tile, in f32"]

RINGS_IN_A_RING, RINGS_IN_A_TREE, RINGS_IN_A_MESH = 2, 3, 4  # that end at one PE, at most


@dataclass(frozen=True, slots=True)
class _TileSum:
    """Which rings are installed on a team of PEs, and the kernel that uses them."""

    name: str
    topology: Topology
    kernel: Callable[..., None]
    kernel_in_turns: Callable[..., None]  # for PEs that have one command under way

    def run(
        self,
        torch: RuntimeContext,
        shape: tuple[int, int],
        tile_bytes: int,
        rings: tuple[str, int],
    ) -> BenchOutcome:
        """Sum tiles of PEs in the order of their coordinates, row by row of ``shape``.

        ``rings`` are the memory of the rings' slots and the bytes of one.
        """
        (rows, columns), (buffer, slot) = shape, rings
        ranks, elements = rows * columns, _num_elements(self.name, tile_bytes)
        values = small_integers(torch, (ranks, elements))
        tiles = deploy(torch, "tiles", values, self._team(torch, ranks).split(0))
        pes = tiles.placement.homes
        torch.install_ipcq(
            rank_to_pe=[(pe.sip, pe.cube, pe.pe) for pe in pes], topology=self.topology,
            w=columns, h=rows, buffer_kind=buffer, slot_size=slot,
        )  # fmt: skip
        places = PerPe({pe: rank for rank, pe in enumerate(pes)})
        is_narrow = torch.machine.spec.pe.queue_commands == 1
        kernel = self.kernel_in_turns if is_narrow else self.kernel
        report = torch.launch(kernel, LocalShard(tiles), elements, places, *shape).report
        found = tiles.numpy(timed=False) if torch.carries_data else None
        return BenchOutcome(
            bound=_bound(torch.machine, report.pes, elements * F32_BYTES, buffer),
            launches=(report,),
            max_error=None if found is None else float(np.abs(found - values.sum(0)).max()),
            tolerance=0.0,
            notes=_notes(pes, buffer),
        )

    def _team(self, torch: RuntimeContext, ranks: int) -> Team:
        """Return the fewest cubes of one SIP that have a PE for each rank."""
        grid = torch.machine.grid
        num_pes = grid.num_cubes_per_sip * grid.num_pes_per_cube
        if ranks > num_pes:
            expected = f"at most the {num_pes} of a SIP"
            fix = "take fewer, or a larger machine"
            raise BenchError(self.name, f"{ranks} PEs", expected, fix)
        num_cubes = -(-ranks // grid.num_pes_per_cube)
        return team_of(torch, cubes=num_cubes, pes=min(ranks, grid.num_pes_per_cube))


def _num_elements(where: str, tile_bytes: int) -> int:
    if tile_bytes < F32_BYTES:
        expected = f"at least the {F32_BYTES} of one element"
        raise BenchError(where, f"bytes={tile_bytes}", expected, "set it higher")
    return tile_bytes // F32_BYTES


def _bound(machine: Machine, pes: tuple[PeCoord, ...], tile_bytes: int, buffer: str) -> Bound:
    """Each tile is read and written once, and of each all but a rank's share is sent twice.

    Everybody's sum depends on everybody's tile, so on that of the first and the last PE.
    """
    ranks = len(pes)
    work = Work(num_pes=ranks, read_bytes=ranks * tile_bytes, written_bytes=ranks * tile_bytes)
    pairs = tuple((sender, pe) for sender in (pes[0], pes[-1]) for pe in pes if pe != sender)
    opens = buffer != "hbm"  # where messages are written to slices before anybody reads them
    path = Path(pes=pes, computes=ranks > 1, opens=opens, messages=pairs)
    sent_bytes = 2 * (ranks - 1) * tile_bytes // ranks
    sent_ps = sent_bytes * PS_PER_US // machine.spec.cube.noc.attach_bytes_per_us
    return bound_of(machine, work, path, {"messages": (sent_ps, 0)})


def _notes(pes: Sequence[PeCoord], buffer: str) -> tuple[str, ...]:
    num_cubes = len({(pe.sip, pe.cube) for pe in pes})
    cubes = "one cube" if num_cubes == 1 else f"{num_cubes} cubes"
    return (f"{len(pes)} PEs of {cubes}, slots of the rings in {buffer.upper()}",)


def _in_a_row(case: _TileSum, summary: str, ranks: int, num_rings: int) -> BenchProgram:
    def run(
        torch: RuntimeContext,
        ranks: Ranks = ranks,
        bytes: TileBytes = 4096,
        buffer: Buffer = "tcm",
        slot: Slot = 4096,
    ) -> BenchOutcome:
        check_sizes(case.name, ranks=ranks, slot=slot)
        return case.run(torch, (1, ranks), bytes, (buffer, slot))

    fit = ProgramFit(counts=_fit_ranks(num_rings), tiles=(("bytes",),), sizes=(("bytes",),))
    return BenchProgram(case.name, summary, run, fit=fit)


def _fit_ranks(num_rings: int) -> Callable[[Offer, Values], Changes]:
    """Return a fit of no more ranks than a SIP has PEs, with so many rings a PE."""

    def counts(offer: Offer, values: Values) -> Changes:
        num_pes = offer.cubes * offer.pes
        ranks: Changes = {"ranks": num_pes} if int(values["ranks"]) > num_pes else {}
        return ranks | _fit_rings(offer, values, num_rings)

    return counts


def _fit_rings(offer: Offer, values: Values, num_rings: int) -> Changes:
    return fit_slot(offer, values, num_rings) if values["buffer"] == "tcm" else {}


def _fit_cubes(offer: Offer, values: Values) -> Changes:
    return fit_team(offer, values) | _fit_rings(offer, values, RINGS_IN_A_RING)


def _fit_mesh(offer: Offer, values: Values) -> Changes:
    """Return a mesh with no more rows and columns than a SIP has PEs for."""
    num_pes, rows = offer.cubes * offer.pes, int(values["rows"])
    rings = _fit_rings(offer, values, RINGS_IN_A_MESH)
    if rows * int(values["columns"]) <= num_pes:
        return rings
    rows = min(rows, max(1, num_pes // 2))
    return {"rows": rows, "columns": num_pes // rows, **rings}


def _run_cubes(
    torch: RuntimeContext,
    cubes: Annotated[int, "cubes of a SIP whose PEs take part; 0: all"] = 2,
    bytes: TileBytes = 4096,
    buffer: Buffer = "tcm",
    slot: Slot = 4096,
) -> BenchOutcome:
    check_sizes("allreduce_cubes", slot=slot)
    team = team_of(torch, cubes=cubes)
    case = _TileSum("allreduce_cubes", Topology.RING_1D, ring_sum_kernel, ring_sum_kernel_in_turns)
    return case.run(torch, (1, team.num_pes), bytes, (buffer, slot))


def _run_mesh(
    torch: RuntimeContext,
    rows: Annotated[int, "of PEs"] = 2,
    columns: Annotated[int, "of PEs"] = 2,
    bytes: TileBytes = 4096,
    buffer: Buffer = "tcm",
    slot: Slot = 4096,
) -> BenchOutcome:
    check_sizes("allreduce_mesh", rows=rows, columns=columns, slot=slot)
    case = _TileSum(
        "allreduce_mesh", Topology.MESH_2D_NO_WRAP, mesh_sum_kernel, mesh_sum_kernel_in_turns
    )
    return case.run(torch, (rows, columns), bytes, (buffer, slot))


ALLREDUCE_RING = _in_a_row(
    _TileSum("allreduce_ring", Topology.RING_1D, ring_sum_kernel, ring_sum_kernel_in_turns),
    "sum of the tiles of 8 PEs around a ring, its slots in TCM, SRAM or HBM",
    8,
    RINGS_IN_A_RING,
)
ALLREDUCE_CUBES = BenchProgram(
    "allreduce_cubes",
    "sum of the tiles of all PEs of several cubes, around one ring",
    _run_cubes,
    fit=ProgramFit(counts=_fit_cubes, tiles=(("bytes",),), sizes=(("bytes",),)),
)
ALLREDUCE_MESH = BenchProgram(
    "allreduce_mesh",
    "sum of the tiles of a 2 x 2 mesh of PEs, rows and then columns",
    _run_mesh,
    fit=ProgramFit(counts=_fit_mesh, tiles=(("bytes",),), sizes=(("bytes",),)),
)
ALLREDUCE_TREE = _in_a_row(
    _TileSum("allreduce_tree", Topology.TREE_BINARY, tree_sum_kernel, tree_sum_kernel),
    "sum of the tiles of 7 PEs, up and down a binary tree",
    7,
    RINGS_IN_A_TREE,
)
