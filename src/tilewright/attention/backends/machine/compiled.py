"""From a flow and a machine to kernels that are ready to run there."""

from functools import lru_cache
from types import SimpleNamespace

from tilewright import language
from tilewright.attention.backends.generated import LoadedKernels, run_text
from tilewright.attention.backends.machine.layout import RowLayout, RowPlacement
from tilewright.attention.codegen import (
    Cut,
    Deal,
    KernelCache,
    KernelFile,
    Merge,
    Target,
    Tiling,
    compile_dense,
)
from tilewright.attention.codegen.plan.target import padded
from tilewright.attention.graph import Graph
from tilewright.device.least_time import command_times, way_ps
from tilewright.language.triton.adaptor import as_triton
from tilewright.machine.build import Machine
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import NodeKind
from tilewright.machine.route import Traffic
from tilewright.machine.totals import slice_bytes_per_us, usable_share


def launch_ps(machine: Machine, pe: PeCoord) -> int:
    """Dispatch of a command from the host to a PE, and its completion back; no work in between."""
    time = command_times(machine, (pe,), is_least=False)[pe]
    return time.there_ps + time.back_ps


def message_ps(machine: Machine, source: PeCoord, target: PeCoord, num_bytes: int) -> int:
    """A message between the DMA channels of two PEs, with the commands that send and receive it."""
    start, end = (machine.node_of(NodeKind.PE_DMA, pe) for pe in (source, target))
    options = (Traffic.COMMUNICATION, source.pe, num_bytes)
    on_links = way_ps(machine, start, end, *options, is_least=False)
    return on_links + 2 * (machine.spec.pe.cpu.command_ps + machine.spec.pe.scheduler.command_ps)


MERGES = frozenset({Merge.MEMORY, Merge.IPCQ})
"""The merges of divided rows that this backend can run."""
_DEALS = {
    RowPlacement.HEAD: Deal.WHOLE,
    RowPlacement.STRIPE: Deal.DEALT,
    RowPlacement.CUBE: Deal.CONTIGUOUS,
    RowPlacement.SIP: Deal.CONTIGUOUS,
}


def target_of(machine: Machine, layout: RowLayout, merges: frozenset[Merge] = MERGES) -> Target:
    """What the generator may know of a machine and of the rows on it."""
    spec, pes = machine.spec, layout.used_pes
    hop_ps = 1
    if layout.members > 1:  # the farthest way between members that talk: half of them apart
        half = 1 << ((layout.members - 1).bit_length() - 1)
        hop_ps = message_ps(machine, layout.pes[half], layout.pes[0], machine.spec.flit_bytes)
    rate = int(slice_bytes_per_us(spec) * usable_share(spec.cube.hbm))
    return Target(
        rows=layout.num_rows,
        pages=layout.member_pages,
        members=layout.members,
        deal=_DEALS[layout.placement] if layout.members > 1 else Deal.WHOLE,
        workers=len(layout.pes),
        register_bytes=spec.pe.registers.capacity_bytes,
        on_chip_bytes=spec.pe.tcm.capacity_bytes - spec.pe.tcm.reserved_bytes,
        spill_bytes_per_us=spec.pe.tcm.read_bytes_per_us,
        memory_bytes_per_us=rate,
        launch_ps=max(launch_ps(machine, pe) for pe in (pes[0], pes[-1])),
        message_ps=hop_ps,
        merges=merges,
    )


@lru_cache(64)
def load_kernels(file: KernelFile) -> LoadedKernels:
    """Run the text of a file without triton: ``jit`` marks functions, which a launch rewrites."""
    triton = SimpleNamespace(jit=as_triton)
    return run_text(file, {"triton": triton, "tl": language})


_FILES = KernelCache()
_compile_dense = lru_cache(64)(compile_dense)


def kernels_for(
    graph: Graph,
    target: Target,
    tiling: Tiling | None = None,
    cut: Cut | None = None,
    *,
    is_dense: bool = False,
    by_mass: bool = False,
    most: int | None = None,
) -> LoadedKernels:
    """Compiled and loaded, once for the same content.

    ``by_mass``: the plan has such budgets; ``most``: what it chooses of a row at most.
    """
    if is_dense:
        return load_kernels(_compile_dense(graph.geometry, target, tiling, cut))
    bound = None if most is None else padded(most)  # one file for budgets that are near
    file = _FILES.compile_graph(graph, tiling, target, cut, by_mass=by_mass, most=bound)
    return load_kernels(file)
