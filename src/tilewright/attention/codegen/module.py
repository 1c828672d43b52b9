"""A file of kernels: its head, the helpers that are called, and the kernels."""

import ast
from collections.abc import Iterable, Sequence
from functools import cache

from tilewright.attention.codegen.expression.narrow_dot import PART_HELPERS
from tilewright.attention.codegen.expression.stored import ROUND_HELPERS
from tilewright.attention.codegen.kernels.select import MASS_HELPERS, SELECT_HELPERS
from tilewright.attention.codegen.kernels.select_block import BLOCK_HELPERS, KEY_HELPERS
from tilewright.attention.codegen.kernels.select_segments import SEGMENT_HELPERS
from tilewright.attention.codegen.plan.cut import Decision
from tilewright.attention.codegen.source.file import Emitted, KernelFile, Scratch
from tilewright.attention.codegen.source.row import RowForm
from tilewright.attention.codegen.source.stage import StageFunction
from tilewright.attention.codegen.source.tree import Function
from tilewright.attention.graph import Geometry

_GROUPS = (
    ROUND_HELPERS,
    SELECT_HELPERS,
    MASS_HELPERS,
    KEY_HELPERS,
    BLOCK_HELPERS,
    SEGMENT_HELPERS,
    *PART_HELPERS,
)


def helpers_of(functions: Iterable[Function]) -> list[str]:
    """Return the groups of which a kernel, or a helper that is needed, calls some function.

    >>> from tilewright.attention.codegen.source.tree import code
    >>> helpers_of([Function("f", "", {}, code("x = round_to_e5m2(x)"))]) == [ROUND_HELPERS]
    True
    """
    statements = (statement for function in functions for statement in function.body)
    called = {name for statement in statements for name, _ in statement.calls()}
    needed: set[str] = set()
    for group in reversed(_GROUPS):  # a helper calls those of its group and of earlier ones
        defined, calls = _names_of(group)
        if called & defined:
            needed.add(group)
            called |= calls
    return [group for group in _GROUPS if group in needed]


@cache
def _names_of(group: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the functions that a group defines, and those that it calls."""
    nodes = list(ast.walk(ast.parse(group)))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return (
        frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef)),
        frozenset(function.id for function in calls if isinstance(function, ast.Name)),
    )


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
    texts = [_head(flow, origin, form.sizes), *helpers_of(functions)]
    return KernelFile(
        flow=flow,
        geometry=form.sizes,
        tiling=form.tiling,
        target=form.target,
        text="\n\n".join([*texts, *(function.text() for function in functions)]),
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


def _head(flow: str, origin: str, sizes: Geometry) -> str:
    return f'''\
"""Kernels of the flow {flow}, generated from {origin}.

{sizes.kind}: pages of {sizes.page_size} tokens, {sizes.query_heads} query heads,
keys of {sizes.key_dim} and values of {sizes.value_dim} channels.
"""

import triton
import triton.language as tl
'''
