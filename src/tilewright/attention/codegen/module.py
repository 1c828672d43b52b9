"""The text of a file of kernels: its head, the helpers that are called, and the kernels."""

import ast
from collections.abc import Iterable
from functools import cache

from tilewright.attention.codegen.expression.narrow_dot import PART_HELPERS
from tilewright.attention.codegen.expression.stored import ROUND_HELPERS
from tilewright.attention.codegen.kernels.select import MASS_HELPERS, SELECT_HELPERS
from tilewright.attention.codegen.kernels.select_block import BLOCK_HELPERS, KEY_HELPERS
from tilewright.attention.codegen.kernels.select_segments import SEGMENT_HELPERS
from tilewright.attention.codegen.source.file import Emitted
from tilewright.attention.codegen.source.tree import Function
from tilewright.attention.graph import Geometry

__all__ = ("file_text", "head_text", "helpers_of")


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
    """The groups of which some function is called, by a kernel or by a helper that is.

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
    """Functions that a group defines, and those that it calls."""
    nodes = list(ast.walk(ast.parse(group)))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return (
        frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef)),
        frozenset(function.id for function in calls if isinstance(function, ast.Name)),
    )


def head_text(flow: str, origin: str, sizes: Geometry) -> str:
    return "\n".join(
        [
            f'"""Kernels of the flow {flow}, generated from {origin}.',
            "",
            f"{sizes.kind}: pages of {sizes.page_size} tokens, {sizes.query_heads} query heads,",
            f"keys of {sizes.key_dim} and values of {sizes.value_dim} channels.",
            '"""',
            "",
            "import triton",
            "import triton.language as tl",
            "",
        ]
    )


def file_text(head: str, kernels: Iterable[Emitted]) -> str:
    """A module: its head, the helpers that kernels call, and the kernels."""
    functions = [function for item in kernels for function in item.functions]
    return "\n\n".join([head, *helpers_of(functions), *(item.text() for item in functions)])
