"""Where the rows of a decode step lie: which PE has which pages, in arrays of pieces.

A row is a request and a KV head. Its pages are cut over *members*, PEs that are neighbours; what a
member has of one row is a *piece*. Pieces go to the PEs in turn: piece (row, member) lies with PE
``row * members + member``, counted round the PEs. All placements are this rule with another number
of members and another way to cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import gcd, lcm, prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.attention.codegen import KernelFile, ScratchAxis
from tilewright.attention.graph import DType, Graph
from tilewright.errors import AttentionError
from tilewright.host import DPPolicy, Interleave, RuntimeContext, Tensor
from tilewright.language.dtype import dtype_of
from tilewright.machine.coords import Grid, PeCoord
from tilewright.units import format_bytes

Array = np.ndarray[Any, Any]
Int64s = npt.NDArray[np.int64]
Pages = TypeVar("Pages", int, Int64s)


class RowPlacement(StrEnum):
    """How the pages of a row are cut over PEs."""

    HEAD = "head"  # not at all: a row lies with one PE
    STRIPE = "stripe"  # dealt in turn to the PEs of a cube
    CUBE = "cube"  # in neighbouring parts over the PEs of a cube
    SIP = "sip"  # in neighbouring parts over the PEs of a SIP


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutSpec:
    """What is laid out. ``block_bytes`` are the bytes of one page in each pool."""

    placement: RowPlacement
    num_kv_heads: int
    row_pages: tuple[int, ...]  # of each request; the longest decides how much room all have
    block_bytes: Mapping[str, int]
    page_bytes: int  # of the MMU


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """``span_blocks`` pages have room in a piece; of them ``member_pages`` are used at most."""

    placement: RowPlacement
    num_requests: int
    num_kv_heads: int
    members: int
    member_pages: int
    span_blocks: int
    page_bytes: int
    pes: tuple[PeCoord, ...]  # of the machine, in the order of pieces
    grid: Grid

    @property
    def num_rows(self) -> int:
        return self.num_requests * self.num_kv_heads

    @property
    def num_pieces(self) -> int:
        return self.num_rows * self.members

    @property
    def head_blocks(self) -> int:
        """Blocks from a KV head of a request to the next one."""
        return self.members * self.span_blocks

    @property
    def used_pes(self) -> tuple[PeCoord, ...]:
        """That have a piece."""
        return self.pes[: self.num_pieces]

    def pe_of(self, row: int, member: int = 0) -> PeCoord:
        return self.pes[(row * self.members + member) % len(self.pes)]

    def places_of(self, pages: Pages) -> tuple[Pages, Pages]:
        """The member of each logical page of a row, and its place among that member's."""
        if self.placement is RowPlacement.STRIPE:
            return pages % self.members, pages // self.members
        return pages // self.member_pages, pages % self.member_pages

    def logical_pages(self, member: int, places: Int64s) -> Int64s:
        """The reverse, for the places of one member."""
        wide = places.astype(np.int64)
        if self.placement is RowPlacement.STRIPE:
            return wide * self.members + member
        return wide + member * self.member_pages

    def blocks_of(self, request: int, num_pages: int, order: Int64s) -> Int64s:
        """Where the logical pages of a request lie in the pools, for its first KV head.

        ``order`` are the places of a piece that its pages take, the first page's first.
        """
        member, local = self.places_of(np.arange(num_pages, dtype=np.int64))
        first = request * self.num_kv_heads * self.head_blocks
        return first + member * self.span_blocks + order[local]

    def policy(self, piece_bytes: int) -> DPPolicy:
        """Of an array whose pieces have so many bytes: whole pages of the MMU."""
        cube_pes = self.grid.num_pes_per_cube
        return DPPolicy(
            sip=Interleave(piece_bytes * cube_pes * self.grid.num_cubes_per_sip),
            cube=Interleave(piece_bytes * cube_pes),
            pe=Interleave(piece_bytes),
        )


def plan_layout(spec: LayoutSpec, grid: Grid, sips: Sequence[int]) -> RowLayout:
    """Lay rows out on some SIPs of a machine."""
    cubes, of_cube = range(grid.num_cubes_per_sip), range(grid.num_pes_per_cube)
    pes = tuple(PeCoord(*place) for place in product(sips, cubes, of_cube))
    members = {RowPlacement.HEAD: 1, RowPlacement.SIP: len(cubes) * len(of_cube)}.get(
        spec.placement, len(of_cube)
    )
    longest = max(spec.row_pages, default=0)
    if longest < 1 or spec.num_kv_heads < 1:
        found = f"rows of {spec.row_pages} pages, {spec.num_kv_heads} KV heads"
        raise AttentionError("layout", found, "at least one page and one head", "give it a token")
    member_pages = -(-longest // members)
    unit = lcm(
        1, *(spec.page_bytes // gcd(spec.page_bytes, size) for size in spec.block_bytes.values())
    )
    return RowLayout(
        placement=spec.placement,
        num_requests=len(spec.row_pages),
        num_kv_heads=spec.num_kv_heads,
        members=members,
        member_pages=member_pages,
        span_blocks=-(-member_pages // unit) * unit,
        page_bytes=spec.page_bytes,
        pes=pes,
        grid=grid,
    )


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
