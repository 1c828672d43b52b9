"""Attention over every page: what sparse attention is measured against."""

from tilewright.attention.codegen.kernels.fused_row import attend_stages, emit_row_kernel
from tilewright.attention.codegen.kernels.merge import emit_merge_parts, part_scratch
from tilewright.attention.codegen.module import file_text, head_text
from tilewright.attention.codegen.plan.cut import Cut
from tilewright.attention.codegen.plan.target import Target, Tiling
from tilewright.attention.codegen.source.file import KernelFile, outputs_of
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.graph import Geometry

__all__ = ("compile_dense",)


def compile_dense(
    sizes: Geometry, target: Target, tiling: Tiling | None = None, cut: Cut | None = None
) -> KernelFile:
    """The kernels of dense attention: the loop of a flow's attention, without lists.

    A flow whose lists have every page gives the same output, bit for bit, under the same tiling.
    """
    tiles = tiling or Tiling.for_target(sizes, target)
    form = RowForm(sizes, tiles, target, cut or Cut())
    stages = attend_stages(form, chosen=None, is_listed=False)
    emitted = [emit_row_kernel("attend_row", form, stages)]
    if form.has_parts:
        emitted.append(emit_merge_parts(form))
    return KernelFile(
        flow="dense",
        geometry=sizes,
        tiling=tiles,
        target=target,
        text=file_text(head_text("dense", "its geometry", sizes), emitted),
        completion=None,
        step=tuple(item.kernel for item in emitted),
        scratch=part_scratch(sizes) if form.has_parts else (),
        results=outputs_of(sizes),
        marks="",
        merge=form.merge,
        cut=form.cut,
        decisions=(),
        stage_of=tuple((stage.name, stage.stage) for stage in stages),
    )
