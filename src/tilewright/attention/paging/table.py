"""The page table of one request, and the sizes of what it points into."""

from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tilewright.errors import PagingError


@dataclass(frozen=True, slots=True)
class PagingSpec:
    """A page is the unit of allocation, a block the unit of selection; a page holds whole blocks.

    Block ``j`` of page ``p`` has the physical id ``p * blocks_per_page + j``.

    >>> PagingSpec(num_pages=8, page_size=32, block_size=16).blocks_per_page
    2
    """

    num_pages: int
    page_size: int
    block_size: int

    def __post_init__(self) -> None:
        for name in ("num_pages", "page_size", "block_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise PagingError(f"paging.{name}", repr(value), "a positive int", "change it")
        if self.page_size % self.block_size:
            found = f"pages of {self.page_size} tokens, blocks of {self.block_size}"
            raise PagingError("paging", found, "whole blocks in a page", "choose a multiple")

    @property
    def blocks_per_page(self) -> int:
        return self.page_size // self.block_size

    @property
    def num_blocks(self) -> int:
        return self.num_pages * self.blocks_per_page

    def pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold at least one of the tokens."""
        return -(-num_tokens // self.block_size)


def _int64s() -> "array[int]":
    return array("q")  # grows in place and converts to NumPy without a loop


@dataclass(eq=False, slots=True)
class PageTable:
    """Pages in logical order. Only the pager changes a table."""

    spec: PagingSpec
    tokens: "array[int]" = field(default_factory=_int64s)
    pages: "array[int]" = field(default_factory=_int64s)
    num_published: int = 0  # leading pages that the prefix index was offered

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_blocks(self) -> int:
        """Blocks with at least one token."""
        return self.spec.blocks_for(self.num_tokens)

    @property
    def num_full_blocks(self) -> int:
        return self.num_tokens // self.spec.block_size

    def block_ids(self, num_blocks: int | None = None) -> npt.NDArray[np.int64]:
        """Physical ids of the first blocks in logical order; of all of them by default."""
        per_page = self.spec.blocks_per_page
        wanted = self.num_blocks if num_blocks is None else num_blocks
        pages = np.array(self.pages[: -(-wanted // per_page)], dtype=np.int64)
        ids = pages[:, None] * per_page + np.arange(per_page, dtype=np.int64)
        return ids.reshape(-1)[:wanted]

    def copy(self) -> "PageTable":
        return PageTable(self.spec, self.tokens[:], self.pages[:], self.num_published)
