"""Selections as lists of pages: what attention reads, in order."""

from dataclasses import dataclass
from typing import Any

from tilewright.attention.backends.reference.namespace import Array

__all__ = ("PageLists", "every_page", "list_pages")


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
