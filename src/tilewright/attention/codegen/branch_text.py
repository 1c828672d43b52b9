"""Kernels of one branch among several: the same text under names of its own."""

import re
from dataclasses import replace

from tilewright.attention.codegen.kernel_file import Kernel, Scratch

__all__ = ("of_branch", "scratch_of_branch")

_OWN = (
    "list_length",
    "list_tokens",
    "log_sum_exp",
    "output",
    "page_list",
    "part_largest",
    "part_total",
    "part_weighted",
)


def of_branch(emitted: tuple[Kernel, str], suffix: str) -> tuple[Kernel, str]:
    """A kernel of lists or attention whose results have a suffix."""
    kernel, text = emitted
    own = re.compile(rf"\b({'|'.join((*_OWN, kernel.name))})((?:_row|_member)?)\b")

    def renamed(words: str) -> str:
        return own.sub(rf"\1{suffix}\2", words)

    arguments = tuple(map(renamed, kernel.arguments))
    return replace(kernel, name=renamed(kernel.name), arguments=arguments), renamed(text)


def scratch_of_branch(scratch: tuple[Scratch, ...], suffix: str) -> tuple[Scratch, ...]:
    return tuple(replace(item, name=f"{item.name}{suffix}") for item in scratch)
