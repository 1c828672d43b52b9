"""The page table of one request: which physical pages hold its tokens, in order."""

from array import array
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tilewright.attention.paging.spec import PagingSpec


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
