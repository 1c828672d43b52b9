"""A cache field as a row sees it: read through the page table, as far as it is needed."""

from dataclasses import dataclass

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.page_codes import PageCodes
from tilewright.attention.graph import DType


@dataclass(frozen=True, slots=True)
class PagedField:
    """Complete pages come from the pool, an unfinished last one from ``tail``.

    Nothing is gathered until ``rows`` or ``whole`` asks for it, so that a product can go through a
    long row tile by tile while its pages are in the cache.
    """

    namespace: Namespace
    pool: Array  # [heads, blocks of the pool, r, c], as stored
    dtype: DType
    blocks: Array  # int64 [complete pages], physical ids
    tail: Array | None = None  # [heads, 1, r, c], computed
    codes: PageCodes | None = None  # of complete pages

    @property
    def num_pages(self) -> int:
        return int(self.blocks.shape[0]) + (self.tail is not None)

    @property
    def inner(self) -> tuple[int, int]:
        rows, columns = self.pool.shape[2:]
        return int(rows), int(columns)

    def rows(self, start: int, stop: int) -> Array:
        """Pages ``start .. stop`` in logical order, computed type: [heads, stop - start, r, c]."""
        xp = self.namespace.xp
        complete = int(self.blocks.shape[0])
        taken = xp.take(self.pool, self.blocks[start : min(stop, complete)], axis=1)
        values = self.namespace.computed(taken, self.dtype)
        if self.codes is not None:
            values = self.codes.read_back(self.namespace, values)
        if self.tail is None or stop <= complete:
            return values
        return xp.concat([values, self.tail], axis=1)

    def whole(self) -> Array:
        return self.rows(0, self.num_pages)
