"""What every file of kernels has: its head, and the arrays that a step leaves."""

from collections.abc import Iterable

from tilewright.attention.codegen.helpers import helpers_of
from tilewright.attention.codegen.kernel_file import Emitted, Scratch, ScratchAxis
from tilewright.attention.codegen.row_text import RowForm
from tilewright.attention.graph import DType, Geometry

__all__ = ("file_text", "head_text", "lists_of", "outputs_of")


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


def lists_of(form: RowForm) -> tuple[Scratch, ...]:
    pages, one = ScratchAxis.PAGES, ScratchAxis.ROWS
    if form.part is not None:
        pages, one = ScratchAxis.MEMBER_PAGES, ScratchAxis.PARTS
    return (
        Scratch("page_list", pages, (), DType.INT32),
        Scratch("list_length", one, (), DType.INT32),
        Scratch("list_tokens", one, (), DType.INT32),
    )


def outputs_of(sizes: Geometry) -> tuple[Scratch, ...]:
    heads, width = sizes.query_heads, sizes.value_dim
    return (
        Scratch("output", ScratchAxis.ROWS, (heads, width), DType.FLOAT32),
        Scratch("log_sum_exp", ScratchAxis.ROWS, (heads,), DType.FLOAT32),
    )
