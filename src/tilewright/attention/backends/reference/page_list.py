"""Selections as lists of pages: what attention reads, in order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.attention.backends.reference.namespace import Array

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
