"""Where the rows of a decode step lie: which PE has which pages of which row. Pure.

A row is a request and a KV head. Its pages are cut over *members*, PEs that are neighbours; what a
member has of one row is a *piece*. Pieces go to the PEs in turn: piece (row, member) lies with PE
``row * members + member``, counted round the PEs. All placements are this rule with another number
of members and another way to cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from math import gcd, lcm
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.errors import AttentionError
from tilewright.machine.coords import Grid, PeCoord
from tilewright.runtime.placement.policy import DPPolicy, Interleave

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
