"""Functions that kernels share: a file has those that its kernels call, ahead of them."""

import re
from collections.abc import Sequence

from tilewright.attention.codegen.mass_select import MASS_HELPERS
from tilewright.attention.codegen.narrow_dot import PART_HELPERS
from tilewright.attention.codegen.select_block import BLOCK_HELPERS, KEY_HELPERS
from tilewright.attention.codegen.select_kernel import SELECT_HELPERS
from tilewright.attention.codegen.select_segments import SEGMENT_HELPERS
from tilewright.attention.codegen.stored import ROUND_HELPERS

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
_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\(")


def helpers_of(texts: Sequence[str]) -> list[str]:
    """The groups of which some function is called, by a kernel or by a helper that is.

    >>> helpers_of(["x = round_to_e5m2(x)"]) == [ROUND_HELPERS]
    True
    """
    called = {name for text in texts for name in _CALLED.findall(text)}
    needed: set[str] = set()
    for group in reversed(_GROUPS):  # a helper calls those of its group and of earlier ones
        if called & set(_DEFINED.findall(group)):
            needed.add(group)
            called.update(_CALLED.findall(group))
    return [group for group in _GROUPS if group in needed]
