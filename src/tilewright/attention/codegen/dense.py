"""Attention over every page: what sparse attention is measured against."""

from tilewright.attention.codegen.kernels.fused_row import attend_stages, emit_row_kernel
from tilewright.attention.codegen.kernels.merge import emit_merge_parts, part_scratch
from tilewright.attention.codegen.module import kernel_file
from tilewright.attention.codegen.plan.cut import Cut
from tilewright.attention.codegen.plan.target import Target, Tiling
from tilewright.attention.codegen.source.file import KernelFile, outputs_of
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.graph import Geometry


def compile_dense(
    sizes: Geometry, target: Target, tiling: Tiling | None = None, cut: Cut | None = None
) -> KernelFile:
    """Compile dense attention: the loop of a flow's attention, without lists.

    A flow whose lists have every page gives the same output, bit for bit, under the same tiling.
    """
    tiles = tiling or Tiling.for_target(sizes, target)
    form = RowForm(sizes, tiles, target, cut or Cut())
    stages = attend_stages(form, chosen=None, is_listed=False)
    emitted = [emit_row_kernel("attend_row", form, stages)]
    if form.has_parts:
        emitted.append(emit_merge_parts(form))
    return kernel_file(
        "dense",
        "its geometry",
        form,
        emitted,
        scratch=part_scratch(sizes) if form.has_parts else (),
        results=outputs_of(sizes),
        stages=stages,
    )
