"""Sizes of a paged cache: the pool, its pages, and the blocks inside a page."""

from dataclasses import dataclass

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
