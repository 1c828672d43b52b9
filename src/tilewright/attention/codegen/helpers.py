"""Functions that kernels share: a file has those that its kernels call, ahead of them."""

import re
from collections.abc import Sequence

from tilewright.attention.codegen.mass_select import MASS_HELPERS
from tilewright.attention.codegen.narrow_dot import PART_HELPERS
from tilewright.attention.codegen.select_block import BLOCK_HELPERS
from tilewright.attention.codegen.select_kernel import SELECT_HELPERS
from tilewright.attention.codegen.stored import ROUND_HELPERS

__all__ = ("helpers_of",)

_GROUPS = (ROUND_HELPERS, SELECT_HELPERS, MASS_HELPERS, BLOCK_HELPERS, *PART_HELPERS)
_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"(\w+)\(")


def helpers_of(texts: Sequence[str]) -> list[str]:
    """The groups of which some function is called.

    >>> helpers_of(["x = round_to_e5m2(x)"]) == [ROUND_HELPERS]
    True
    """
    called = {name for text in texts for name in _CALLED.findall(text)}
    return [group for group in _GROUPS if called & set(_DEFINED.findall(group))]
