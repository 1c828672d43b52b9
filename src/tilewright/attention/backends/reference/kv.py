"""Keys and values of one request and layer, gathered page by page."""

from dataclasses import dataclass

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.backends.reference.page_codes import PageCodes
from tilewright.attention.graph import DType


@dataclass(frozen=True, slots=True)
class KvReader:
    """The first ``num_tokens`` tokens of a sequence.

    Under MLA there is no pool of values: a value is the first ``value_dim`` channels of a latent.
    """

    namespace: Namespace
    keys: Array  # [heads, blocks of the pool, page size, key_dim]
    values: Array | None
    value_dim: int
    dtype: DType
    blocks: Array  # int64 [pages], physical ids
    num_tokens: int
    key_codes: PageCodes | None = None  # of pages that are complete with ``num_tokens``
    value_codes: PageCodes | None = None

    @property
    def num_heads(self) -> int:
        return int(self.keys.shape[0])

    @property
    def page_size(self) -> int:
        return int(self.keys.shape[2])

    @property
    def num_pages(self) -> int:
        return -(-self.num_tokens // self.page_size)

    def tile(self, pages: Array) -> tuple[Array, Array]:
        """Keys and values of logical pages [heads, n], computed: [heads, n * page size, width]."""
        keys = self._gather(self.keys, pages, self.key_codes)
        if self.values is None:
            return keys, keys[..., : self.value_dim]
        return keys, self._gather(self.values, pages, self.value_codes)

    def token_valid(self, pages: Array, page_valid: Array) -> Array:
        """Which tokens of a tile are there: bool [heads, n * page size]."""
        xp = self.namespace.xp
        offsets = xp.arange(self.page_size, dtype=pages.dtype)
        position = pages[..., None] * self.page_size + offsets
        valid = (position < self.num_tokens) & page_valid[..., None]
        return xp.reshape(valid, (valid.shape[0], -1))

    def _gather(self, pool: Array, pages: Array, codes: PageCodes | None) -> Array:
        """One take over heads and pages together."""
        xp = self.namespace.xp
        heads, num_blocks, size, width = pool.shape
        offsets = xp.arange(heads, dtype=xp.int64)[:, None] * num_blocks
        flat = xp.reshape(xp.take(self.blocks, xp.reshape(pages, (-1,))), pages.shape) + offsets
        rows = xp.take(
            xp.reshape(pool, (heads * num_blocks, size, width)), xp.reshape(flat, (-1,)), axis=0
        )
        tokens = self.namespace.computed(rows, self.dtype)
        if codes is not None:
            is_complete = xp.reshape(pages < self.num_tokens // size, (-1, 1, 1))
            tokens = xp.where(is_complete, codes.read_back(self.namespace, tokens), tokens)
        return xp.reshape(tokens, (heads, pages.shape[1] * size, width))
