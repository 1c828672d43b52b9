"""Names of the kernels and arrays of one branch of several."""

import re
from collections.abc import Iterable
from dataclasses import replace

from tilewright.attention.codegen.kernel_file import Kernel, Scratch

__all__ = ("of_branch", "scratch_of_branch")

_ARRAYS = (
    "page_list",
    "list_length",
    "list_tokens",
    "part_largest",
    "part_total",
    "part_weighted",
    "output",
    "log_sum_exp",
)
_NAMES = re.compile(rf"\b({'|'.join(_ARRAYS)})((?:_row|_member)?)\b")


def of_branch(emitted: tuple[Kernel, str], suffix: str) -> tuple[Kernel, str]:
    """A kernel that lists, attends or merges, with the suffix in its name and in its arrays' names.

    >>> from tilewright.attention.codegen.kernel_file import Grid
    >>> kernel = Kernel("merge_parts", Grid.ROWS, ("output", "output_row"))
    >>> of_branch((kernel, "def merge_parts(output, output_row): ..."), "_1")[1]
    'def merge_parts_1(output_1, output_1_row): ...'
    """
    if not suffix:
        return emitted
    kernel, text = emitted
    named = re.sub(rf"\b{kernel.name}\b", f"{kernel.name}{suffix}", _renamed(text, suffix))
    arguments = tuple(_renamed(name, suffix) for name in kernel.arguments)
    return replace(kernel, name=f"{kernel.name}{suffix}", arguments=arguments), named


def scratch_of_branch(items: Iterable[Scratch], suffix: str) -> tuple[Scratch, ...]:
    return tuple(replace(item, name=_renamed(item.name, suffix)) for item in items)


def _renamed(text: str, suffix: str) -> str:
    return _NAMES.sub(rf"\g<1>{suffix}\g<2>", text)
