"""A file of kernels: its head, the helpers that are called, and the kernels."""

from collections.abc import Iterable, Sequence

from tilewright.attention.codegen.plan.cut import Decision
from tilewright.attention.codegen.source.file import Emitted, KernelFile, Scratch
from tilewright.attention.codegen.source.helpers import helpers_of
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.stage import StageFunction


def kernel_file(
    flow: str,
    origin: str,
    form: RowForm,
    kernels: Sequence[Emitted],
    *,
    completion: Emitted | None = None,
    scratch: Iterable[Scratch],
    results: Iterable[Scratch],
    marks: str = "",
    decisions: tuple[Decision, ...] = (),
    stages: Iterable[StageFunction],
    most: int | None = None,
) -> KernelFile:
    """Assemble the file of a flow; ``stages`` are the functions that some kernels call."""
    ahead = [] if completion is None else [completion]
    functions = [function for item in [*ahead, *kernels] for function in item.functions]
    sizes = form.sizes
    head = f'''\
"""Kernels of the flow {flow}, generated from {origin}.

{sizes.kind}: pages of {sizes.page_size} tokens, {sizes.query_heads} query heads,
keys of {sizes.key_dim} and values of {sizes.value_dim} channels.
"""

import triton
import triton.language as tl
'''
    texts = [head, *helpers_of(functions), *(function.text() for function in functions)]
    return KernelFile(
        flow=flow,
        geometry=form.sizes,
        tiling=form.tiling,
        target=form.target,
        text="\n\n".join(texts),
        completion=None if completion is None else completion.kernel,
        step=tuple(item.kernel for item in kernels),
        scratch=tuple(scratch),
        results=tuple(results),
        marks=marks,
        merge=form.merge,
        cut=form.cut,
        decisions=decisions,
        stage_of=tuple((stage.name, stage.stage) for stage in stages),
        most=most,
    )
