"""The arrays of a step in simulated memory: their pieces, and the strides that kernels are told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from tilewright.attention.backends.machine.layout import RowLayout
from tilewright.host import DPPolicy, RuntimeContext, Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class PieceArray:
    """An array with a piece for each row and member. A piece begins on a page of the MMU."""

    name: str
    dtype: str  # a name of the language
    shape: tuple[int, ...]  # of what a piece holds
    item_bytes: int
    piece_elements: int  # from a piece to the next

    @property
    def num_elements(self) -> int:
        return prod(self.shape)


def piece_array(
    name: str, dtype: str, shape: tuple[int, ...], *, item_bytes: int, page_bytes: int
) -> PieceArray:
    """Pieces of at least this shape, padded to whole pages of the MMU."""
    unit = page_bytes // gcd(page_bytes, item_bytes)
    padded = -(-max(prod(shape), 1) // unit) * unit
    return PieceArray(name, dtype, shape, item_bytes, padded)


def strides_of(arrays: Iterable[PieceArray], layout: RowLayout) -> dict[str, int]:
    """``<array>_row`` and ``<array>_member``: elements from a row, or a member, to the next."""
    numbers: dict[str, int] = {}
    for array in arrays:
        numbers[f"{array.name}_row"] = array.piece_elements * layout.members
        numbers[f"{array.name}_member"] = array.piece_elements
    return numbers


@dataclass(frozen=True, slots=True)
class Pieces:
    """A piece array in the memories of a machine."""

    array: PieceArray
    layout: RowLayout
    tensor: Tensor

    @classmethod
    def empty(cls, torch: RuntimeContext, layout: RowLayout, array: PieceArray) -> "Pieces":
        """Memory that nobody has written, each piece in the slice of its owner."""
        policy = layout.policy(array.piece_elements * array.item_bytes)
        shape = (layout.num_pieces, array.piece_elements)
        tensor = torch.empty(shape, array.dtype, dp=policy, name=array.name)
        return cls(array, layout, tensor)

    def write(self, values: Array) -> None:
        """``values`` are [rows, members, ...] or [rows, ...] for the homes; takes no time."""
        if not self.tensor.has_values:
            return
        num_rows, members = self.layout.num_rows, self.layout.members
        flat = np.zeros((num_rows, members, self.array.piece_elements), values.dtype)
        per_member = values.ndim == len(self.array.shape) + 2
        given = values if per_member else values[:, None]
        flat[:, : given.shape[1], : self.array.num_elements] = given.reshape(
            num_rows, given.shape[1], -1
        )
        self.tensor.copy_(flat.reshape(self.tensor.shape), timed=False)

    def read(self) -> Array:
        """[rows, members, ...] as it is now; takes no time."""
        rows = (self.layout.num_rows, self.layout.members)
        found: Array = self.tensor.read(np.s_[:, : self.array.num_elements], timed=False)
        return found.reshape(*rows, *self.array.shape)


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
