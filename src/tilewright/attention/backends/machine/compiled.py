"""From a flow and a machine to kernels that are ready to run there."""

from functools import lru_cache

from tilewright.attention.backends.machine.layout import RowLayout, RowPlacement
from tilewright.attention.backends.machine.load import LoadedKernels, load_kernels
from tilewright.attention.codegen import (
    Cut,
    Deal,
    KernelCache,
    Merge,
    Target,
    Tiling,
    compile_dense,
)
from tilewright.attention.graph import Geometry, Graph
from tilewright.machine.build import Machine
from tilewright.machine.totals import slice_bytes_per_us, usable_share

__all__ = ("MERGES", "kernels_for", "target_of")

MERGES = frozenset({Merge.MEMORY, Merge.IPCQ})
"""The merges of divided rows that this backend can run."""
LAUNCH_PS = 500_000  # dispatch and completion of a launch, about: the cost model's figure
_DEALS = {
    RowPlacement.HEAD: Deal.WHOLE,
    RowPlacement.STRIPE: Deal.DEALT,
    RowPlacement.CUBE: Deal.CONTIGUOUS,
    RowPlacement.SIP: Deal.CONTIGUOUS,
}


def target_of(machine: Machine, layout: RowLayout, merges: frozenset[Merge] = MERGES) -> Target:
    """What the generator may know of a machine and of the rows on it."""
    spec = machine.spec
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
        launch_ps=LAUNCH_PS,
        merges=merges,
    )


_FILES = KernelCache()


def kernels_for(
    graph: Graph,
    target: Target,
    tiling: Tiling | None = None,
    cut: Cut | None = None,
    *,
    is_dense: bool = False,
    by_mass: bool = False,
) -> LoadedKernels:
    """Compiled and loaded, once for the same content. ``by_mass``: the plan has such budgets."""
    if is_dense:
        return _dense_kernels(graph.geometry, target, tiling, cut)
    return _load(_FILES.compile_graph(graph, tiling, target, cut, by_mass=by_mass))


@lru_cache(64)
def _dense_kernels(
    sizes: Geometry, target: Target, tiling: Tiling | None, cut: Cut | None
) -> LoadedKernels:
    return load_kernels(compile_dense(sizes, target, tiling, cut))


_load = lru_cache(64)(load_kernels)
