"""Functions that kernels share: a file has those that its kernels call, ahead of them."""

import ast
from collections.abc import Iterable
from functools import cache

from tilewright.attention.codegen.mass_select import MASS_HELPERS
from tilewright.attention.codegen.narrow_dot import PART_HELPERS
from tilewright.attention.codegen.select_block import BLOCK_HELPERS, KEY_HELPERS
from tilewright.attention.codegen.select_kernel import SELECT_HELPERS
from tilewright.attention.codegen.select_segments import SEGMENT_HELPERS
from tilewright.attention.codegen.stored import ROUND_HELPERS
from tilewright.attention.codegen.tree import Function

__all__ = ("helpers_of",)

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

    >>> from tilewright.attention.codegen.tree import code
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
