"""Pages of one request: its fields through the page table, and lists of selected pages."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference.namespace import Array, Namespace
from tilewright.attention.graph import DType, Geometry
from tilewright.attention.graph.geometry import SCALED_DTYPES

STAGED_DTYPE = DType.BFLOAT16  # of the tokens of a page that is not complete
SCALE_DTYPE = DType.BFLOAT16
_LARGEST_CODE = {DType.INT8: 127, DType.INT4: 7}  # of both signs, so that zero stays zero


@dataclass(frozen=True, slots=True)
class PageCodes:
    """How the complete pages of one field are kept.

    A code is a value over its scale, rounded to the nearest whole number, ties to even. A scale is
    the largest magnitude over ``axis``, divided by the largest code and rounded to bfloat16. What
    is read back is code times scale, within half a scale of the staged value.
    """

    dtype: DType
    axis: int  # -2: a scale for each channel of a page; -1: for each token

    def read_back(self, namespace: Namespace, pages: Array) -> Array:
        """Return what staged values [..., tokens, channels] of complete pages are read as."""
        xp, limit = namespace.xp, _LARGEST_CODE[self.dtype]
        largest = xp.max(xp.abs(pages), axis=self.axis, keepdims=True)
        scale = namespace.rounded(largest / limit, SCALE_DTYPE)
        divisor = xp.where(scale > 0, scale, xp.ones_like(scale))
        return xp.clip(xp.round(pages / divisor), -limit, limit) * scale

    def page_bytes(self, tokens: int, channels: int) -> int:
        """Return the bytes of a page's codes and scales."""
        scales = channels if self.axis == -2 else tokens
        return -(-tokens * channels * self.dtype.bits // 8) + scales * SCALE_DTYPE.bits // 8


def page_codes_of(geometry: Geometry) -> dict[str, PageCodes]:
    """Return the codes of keys and values; none where their type is a float.

    Keys, and latents, have a scale for each channel; values one for each token.
    """
    if geometry.kv_dtype not in SCALED_DTYPES:
        return {}
    axes = {name: -1 if name == "v" else -2 for name in geometry.reserved_fields}
    return {name: PageCodes(geometry.kv_dtype, axis) for name, axis in axes.items()}


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


@dataclass(frozen=True, slots=True)
class KvReader:
    """The first ``num_tokens`` tokens of a sequence.

    Under MLA there is no pool of values: a value is the first ``value_dim`` channels of a latent.
    """

    keys: PagedField  # codes are those of pages that are complete with ``num_tokens``
    values: PagedField | None
    value_dim: int
    num_tokens: int

    @property
    def namespace(self) -> Namespace:
        return self.keys.namespace

    @property
    def page_size(self) -> int:
        return int(self.keys.pool.shape[2])

    @property
    def num_pages(self) -> int:
        return -(-self.num_tokens // self.page_size)

    def tile(self, pages: Array) -> tuple[Array, Array]:
        """Keys and values of logical pages [heads, n], computed: [heads, n * page size, width]."""
        keys = self._gather(self.keys, pages)
        if self.values is None:
            return keys, keys[..., : self.value_dim]
        return keys, self._gather(self.values, pages)

    def token_valid(self, pages: Array, page_valid: Array) -> Array:
        """Which tokens of a tile are there: bool [heads, n * page size]."""
        xp = self.namespace.xp
        offsets = xp.arange(self.page_size, dtype=pages.dtype)
        position = pages[..., None] * self.page_size + offsets
        valid = (position < self.num_tokens) & page_valid[..., None]
        return xp.reshape(valid, (valid.shape[0], -1))

    def _gather(self, field: PagedField, pages: Array) -> Array:
        """One take over heads and pages together."""
        xp = self.namespace.xp
        heads, num_blocks, size, width = field.pool.shape
        offsets = xp.arange(heads, dtype=xp.int64)[:, None] * num_blocks
        flat = xp.reshape(xp.take(field.blocks, xp.reshape(pages, (-1,))), pages.shape) + offsets
        pool = xp.reshape(field.pool, (heads * num_blocks, size, width))
        rows = xp.take(pool, xp.reshape(flat, (-1,)), axis=0)
        tokens = self.namespace.computed(rows, field.dtype)
        if field.codes is not None:
            is_complete = xp.reshape(pages < self.num_tokens // size, (-1, 1, 1))
            tokens = xp.where(is_complete, field.codes.read_back(self.namespace, tokens), tokens)
        return xp.reshape(tokens, (heads, pages.shape[1] * size, width))


def whole(value: Any) -> Array:
    """Return an array as it is, and all pages of a field."""
    return value.whole() if isinstance(value, PagedField) else value


Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PageLists:
    """Selected pages of each KV head in ascending logical order, padded to the longest list."""

    pages: Array  # int64 [heads, n], logical; padding is 0
    valid: Array  # bool [heads, n]
    counts: tuple[int, ...]
    by_query: Array | None = None  # bool [heads, n, query heads]: who selected the page


def list_pages(xp: Any, selected: Array) -> PageLists:
    """Lists of a selection [heads, pages, 1, query heads or 1]."""
    per_query = selected[:, :, 0, :]
    chosen = xp.any(per_query, axis=-1) if per_query.shape[-1] > 1 else per_query[..., 0]
    counts = xp.sum(xp.astype(chosen, xp.int64), axis=-1)
    longest = int(xp.max(counts))
    heads, pages = xp.nonzero(chosen)
    starts = xp.cumulative_sum(counts) - counts
    place = xp.arange(heads.shape[0], dtype=xp.int64) - xp.take(starts, heads)
    listed = xp.zeros((chosen.shape[0], longest), dtype=xp.int64)
    listed[heads, place] = xp.astype(pages, xp.int64)
    valid = xp.arange(longest, dtype=xp.int64) < counts[:, None]
    by_query = None
    if per_query.shape[-1] > 1:
        index = xp.broadcast_to(listed[..., None], (*listed.shape, per_query.shape[-1]))
        by_query = xp.take_along_axis(per_query, index, axis=1)
    return PageLists(listed, valid, tuple(int(count) for count in counts), by_query)


def every_page(xp: Any, num_heads: int, num_pages: int) -> PageLists:
    pages = xp.broadcast_to(xp.arange(num_pages, dtype=xp.int64), (num_heads, num_pages))
    valid = xp.ones((num_heads, num_pages), dtype=xp.bool)
    return PageLists(pages, valid, (num_pages,) * num_heads)


@dataclass(frozen=True, slots=True, eq=False)
class PageCsr:
    """Lists back to back: row r has ``pages[offsets[r] : offsets[r + 1]]``."""

    offsets: Int64s
    pages: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class PageRows:
    """Lists as a table that is padded with -1, and the tokens of each row."""

    pages: Int64s  # [rows, longest]
    num_tokens: Int64s


def csr_of(lists: PageLists, blocks: Int64s | None = None) -> PageCsr:
    """One row for each KV head. With ``blocks`` pages are physical ids instead of logical ones."""
    rows = [np.asarray(lists.pages[row, :count]) for row, count in enumerate(lists.counts)]
    pages = np.concatenate(rows).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lists.counts)]).astype(np.int64)
    return PageCsr(offsets, pages if blocks is None else blocks[pages])


def rows_of(
    lists: PageLists, *, page_size: int, num_tokens: int, blocks: Int64s | None = None
) -> PageRows:
    """One row for each KV head of a sequence of ``num_tokens``; only its last page may be short."""
    counts = np.array(lists.counts, dtype=np.int64)
    logical = np.array(lists.pages, dtype=np.int64)
    there = np.arange(logical.shape[1]) < counts[:, None]
    last_page, missing = (num_tokens - 1) // page_size, -num_tokens % page_size
    short = (there & (logical == last_page)).any(axis=1)
    pages = logical if blocks is None else blocks[logical]
    return PageRows(np.where(there, pages, -1), counts * page_size - short * missing)
