"""The arrays of a step in simulated memory: their pieces, and the strides that kernels are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from tilewright.attention.backends.machine.layout import Int64s, RowLayout
from tilewright.attention.codegen import KernelFile, ScratchAxis
from tilewright.attention.graph import DType, Graph
from tilewright.errors import AttentionError
from tilewright.host import DPPolicy, RuntimeContext, Tensor
from tilewright.language.dtype import dtype_of
from tilewright.units import format_bytes

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Pieces:
    """An array with a piece for each row and member. A piece begins on a page of the MMU."""

    shape: tuple[int, ...]  # of what a piece holds
    layout: RowLayout
    tensor: Tensor  # [pieces, elements from a piece to the next]

    @classmethod
    def empty(
        cls, torch: RuntimeContext, layout: RowLayout, name: str, dtype: str, shape: tuple[int, ...]
    ) -> "Pieces":
        """Take memory that nobody has written; pieces are padded, each in its owner's slice.

        ``dtype`` is a name of the language.
        """
        item_bytes = dtype_of(dtype).bits // 8
        unit = layout.page_bytes // gcd(layout.page_bytes, item_bytes)
        piece_elements = -(-max(prod(shape), 1) // unit) * unit
        policy = layout.policy(piece_elements * item_bytes)
        tensor = torch.empty((layout.num_pieces, piece_elements), dtype, dp=policy, name=name)
        return cls(shape, layout, tensor)

    def write(self, values: Array) -> None:
        """``values`` are [rows, members, ...] or [rows, ...] for the homes; takes no time."""
        if not self.tensor.has_values:
            return
        num_rows, members = self.layout.num_rows, self.layout.members
        flat = np.zeros((num_rows, members, self.tensor.shape[1]), values.dtype)
        per_member = values.ndim == len(self.shape) + 2
        given = values if per_member else values[:, None]
        flat[:, : given.shape[1], : prod(self.shape)] = given.reshape(num_rows, given.shape[1], -1)
        self.tensor.copy_(flat.reshape(self.tensor.shape), timed=False)

    def read(self) -> Array:
        """[rows, members, ...] as it is now; takes no time."""
        found: Array = self.tensor.read(np.s_[:, : prod(self.shape)], timed=False)
        return found.reshape(self.layout.num_rows, self.layout.members, *self.shape)


def strides_of(arrays: Mapping[str, Pieces]) -> dict[str, int]:
    """``<array>_row`` and ``<array>_member``: elements from a row, or a member, to the next."""
    numbers: dict[str, int] = {}
    for name, pieces in arrays.items():
        piece_elements = pieces.tensor.shape[1]
        numbers[f"{name}_row"] = piece_elements * pieces.layout.members
        numbers[f"{name}_member"] = piece_elements
    return numbers


def replicate(
    torch: RuntimeContext, layout: RowLayout, values: Mapping[str, Array]
) -> dict[str, Tensor]:
    """Place arrays that every program reads: a copy in each slice.

    Values are written where programs run: a table of a learned flow has megabytes, and hundreds
    of PEs may have no row.
    """
    pes = frozenset(layout.used_pes)
    tensors = {}
    for name, array in values.items():
        tensor = torch.empty(array.shape, str(array.dtype), dp=DPPolicy(), name=name)
        tensors[name] = tensor.copy_(array, timed=False, only=pes)
    return tensors


MAX_COPY_BYTES = 768 * 2**20  # a program that reads a table has it about twice more on its way


def check_table_copies(graph: Graph, layout: RowLayout) -> None:
    """Refuse a step with values whose tables would not fit: every PE that has pages has a copy."""
    num_bytes = sum(prod(item.type.shape) * item.type.dtype.bits // 8 for item in graph.parameters)
    num_pes = len(layout.used_pes)
    if num_bytes * num_pes > MAX_COPY_BYTES:
        found = f"tables of {format_bytes(num_bytes)}, a copy for each of {num_pes} PEs"
        expected = f"at most {format_bytes(MAX_COPY_BYTES)} of copies where values are computed"
        fix = "leave values out with --no-data, or put rows on fewer PEs with --placement head"
        raise AttentionError(f"parameters of flow {graph.name!r}", found, expected, fix)


def scratch_of(
    torch: RuntimeContext, layout: RowLayout, file: KernelFile, longest: int
) -> dict[str, Pieces]:
    """Take the memory that kernels share in a step; ``longest`` is in pages, of a request."""
    leading = {ScratchAxis.PAGES: (longest,), ScratchAxis.MEMBER_PAGES: (layout.member_pages,)}
    scratch = {}
    for item in (*file.scratch, *file.results):
        shape = (*leading.get(item.axis, ()), *item.shape)
        scratch[item.name] = Pieces.empty(torch, layout, item.name, item.dtype.value, shape)
    return scratch


def write_marks(
    layout: RowLayout,
    file: KernelFile,
    scratch: Mapping[str, Pieces],
    marks: Sequence[Int64s],
) -> None:
    """Into every array of marks: a kernel that knows what it stores overwrites them."""
    for item in file.scratch:
        if item.dtype is not DType.INT8:
            continue
        pieces = scratch[item.name]
        values = np.zeros((layout.num_rows, layout.members, *pieces.shape), dtype=np.int8)
        for row, pages in enumerate(marks):
            if item.axis is ScratchAxis.MEMBER_PAGES:
                values[row, *layout.places_of(pages)] = 1
            elif item.axis is ScratchAxis.PAGES:
                values[row, 0, pages] = 1
        pieces.write(values)
