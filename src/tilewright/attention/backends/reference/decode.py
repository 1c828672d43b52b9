"""Attention of a query over listed pages, tile by tile."""

from collections.abc import Callable
from typing import Any

from tilewright.attention.backends.reference.kv import KvReader
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.page_list import PageLists
from tilewright.attention.backends.reference.softmax import (
    Partial,
    empty_partial,
    merge_partials,
    partial_of,
)
from tilewright.attention.backends.reference.summation import tree_sum

TILE_TOKENS = 512  # tokens of a tile; every tile of a row is full, so bits do not depend on k


def attend_pages(
    reader: KvReader, query: Array, lists: PageLists, scale: float, *, want_mass: bool = False
) -> tuple[Partial, Array | None]:
    """Attention of one token's query [heads, query heads, key_dim] over its selected pages.

    The mass of each listed page, if wanted, is [heads, n, query heads].
    """
    xp = reader.namespace.xp

    def keep_selected(part: PageLists, logits: Array) -> Array:
        if part.by_query is None:
            return logits
        return _only_who_selected(xp, logits, part.by_query, reader.page_size)

    return attend_tiles(reader, query, lists, scale, keep_selected, want_mass=want_mass)


def attend_tiles(
    reader: KvReader,
    query: Array,
    lists: PageLists,
    scale: float,
    restrict: Callable[[PageLists, Array], Array],
    *,
    want_mass: bool,
) -> tuple[Partial, Array | None]:
    """Queries [heads, queries, key_dim] over listed pages.

    ``restrict`` turns logits [heads, queries, tokens of the tile] to minus infinity where a query
    must not look. Tokens that are not there are left out before.
    """
    xp = reader.namespace.xp
    heads, queries, _ = query.shape
    result = empty_partial(xp, heads, queries, reader.value_dim)
    tile_pages = max(1, TILE_TOKENS // reader.page_size)
    masses = []
    for start in range(0, lists.pages.shape[1], tile_pages):
        part = _tile_of(xp, lists, start, tile_pages)
        keys, values, valid = _gather_tile(reader, part)
        logits = xp.matmul(query, xp.matrix_transpose(keys)) * scale
        if valid is not None:
            logits = xp.where(valid[:, None, :], logits, xp.full_like(logits, -xp.inf))
        tile, weights = partial_of(xp, restrict(part, logits), values)
        result = merge_partials(xp, result, tile)
        if want_mass:
            masses.append((tile.largest, _page_weights(xp, weights, reader.page_size)))
    if not want_mass:
        return result, None
    return result, _masses(xp, result, masses)[:, : lists.pages.shape[1]]


def _tile_of(xp: Any, lists: PageLists, start: int, size: int) -> PageLists:
    """Entries ``start .. start + size``, filled up with pages that do not count."""
    stop = min(start + size, lists.pages.shape[1])
    parts = (lists.pages, lists.valid, lists.by_query)
    cut = [None if part is None else part[:, start:stop] for part in parts]
    missing = size - (stop - start)
    if missing:
        cut = [None if part is None else _padded(xp, part, missing) for part in cut]
    return PageLists(cut[0], cut[1], lists.counts, cut[2])


def _padded(xp: Any, part: Array, missing: int) -> Array:
    shape = (part.shape[0], missing, *part.shape[2:])
    return xp.concat([part, xp.zeros(shape, dtype=part.dtype)], axis=1)


def _gather_tile(reader: KvReader, part: PageLists) -> tuple[Array, Array, Array | None]:
    """Keys, values and, unless every token counts, which do; those that do not are 0."""
    xp = reader.namespace.xp
    keys, values = reader.tile(part.pages)
    valid = reader.token_valid(part.pages, part.valid)
    if bool(xp.all(valid)):
        return keys, values, None
    there = valid[..., None]
    keys = xp.where(there, keys, xp.zeros_like(keys))
    return keys, xp.where(there, values, xp.zeros_like(values)), valid


def _only_who_selected(xp: Any, logits: Array, by_query: Array, page_size: int) -> Array:
    """Minus infinity where a query head did not select the page: by_query [heads, n, queries]."""
    heads, pages, queries = by_query.shape
    spread = xp.broadcast_to(by_query[:, :, None, :], (heads, pages, page_size, queries))
    allowed = xp.matrix_transpose(xp.reshape(spread, (heads, pages * page_size, queries)))
    return xp.where(allowed, logits, xp.full_like(logits, -xp.inf))


def _page_weights(xp: Any, weights: Array, page_size: int) -> Array:
    """Sums over the tokens of each page: [heads, pages, queries]."""
    heads, queries, tokens = weights.shape
    by_page = xp.reshape(weights, (heads, queries, tokens // page_size, page_size))
    return xp.matrix_transpose(tree_sum(xp, by_page, -1)[..., 0])


def _masses(xp: Any, result: Partial, tiles: list[tuple[Array, Array]]) -> Array:
    """Probabilities from the weights of tiles: [heads, pages of all tiles, queries]."""
    total = xp.where(result.total == 0, xp.ones_like(result.total), result.total)
    finite = xp.where(result.largest == -xp.inf, xp.zeros_like(total), result.largest)
    parts = []
    for largest, weights in tiles:
        scale = xp.exp(largest - finite) / total
        parts.append(weights * xp.matrix_transpose(scale))
    return xp.concat(parts, axis=1)
