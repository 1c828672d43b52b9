"""All-reduce algorithms as KernBench's plug-ins, and the steps that their kernels are made of.

A module has a kernel in KernBench's dialect, and its arguments. ``tl`` is the kernel's own, blocks
are what ``tl.load`` and ``tl.recv`` return, directions are names of installed rings.
"""

from dataclasses import dataclass
from typing import Any

from tilewright.language.dtype import dtype_of


def pe_rank(tl: Any) -> int:
    """Return the running program's rank where every PE of a SIP is a rank."""
    rank: int = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    return rank


def kernel_args(world_size: int, n_elem: int) -> tuple[int, int]:
    """Return the arguments of most kernels behind the tensor."""
    return n_elem, world_size


def tile_address(base: int, tile_index: int, n_elem: int, dtype: str) -> int:
    """Return the byte address of a tile; tiles of ``n_elem`` elements follow each other."""
    return base + tile_index * n_elem * dtype_of(dtype).bits // 8


def ring_sum(tl: Any, block: Any, length: int, ahead: str, behind: str) -> Any:
    """Return the sum of the blocks of a ring of ``length`` programs.

    In each of ``length - 1`` rounds a program forwards the whole block that it received last.
    """
    total = moving = block
    for _ in range(length - 1):
        tl.send(dir=ahead, src=moving)
        moving = tl.recv(dir=behind, shape=block.shape, dtype=block.dtype)
        total = total + moving
    return total


@dataclass(frozen=True, slots=True)
class Line:
    """A program's position on a line of programs, and the directions along the line."""

    position: int
    length: int
    root: int  # position that sums go to and results come from
    low: str  # direction to the position before
    high: str  # direction to the position after

    @property
    def toward(self) -> str | None:
        """Direction to the root; None at the root."""
        if self.position == self.root:
            return None
        return self.high if self.position < self.root else self.low

    @property
    def away(self) -> tuple[str, ...]:
        """Directions to neighbours that are farther from the root."""
        has_low = 0 < self.position <= self.root
        has_high = self.root <= self.position < self.length - 1
        return (self.low,) * has_low + (self.high,) * has_high


def reduce_to(tl: Any, block: Any, line: Line) -> Any:
    """Return at the root the sum of the line; elsewhere the part that was sent toward it."""
    for direction in line.away:
        block = block + tl.recv(dir=direction, shape=block.shape, dtype=block.dtype)
    if line.toward is not None:
        tl.send(dir=line.toward, src=block)
    return block


def broadcast_from(tl: Any, block: Any, line: Line) -> Any:
    """Return the root's block on every program of the line."""
    if line.toward is not None:
        block = tl.recv(dir=line.toward, shape=block.shape, dtype=block.dtype)
    for direction in line.away:
        tl.send(dir=direction, src=block)
    return block
