"""Attention over listed pages, tile by tile: softmax in parts, of one token or of a prompt."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.attention.backends.reference.namespace import Array, tree_sum
from tilewright.attention.backends.reference.pages import KvReader, PageLists, every_page


@dataclass(frozen=True, slots=True)
class Partial:
    """Attention over some of the tokens, not yet divided: [heads, queries, 1 or width]."""

    largest: Array  # of the logits; minus infinity if there is no token
    total: Array  # sum of exp(logit - largest)
    weighted: Array  # sum of exp(logit - largest) * value

    def output(self, xp: Any) -> Array:
        """The attention output; 0 where there was no token at all."""
        return self.weighted / xp.where(self.total == 0, xp.ones_like(self.total), self.total)

    def log_sum_exp(self, xp: Any) -> Array:
        """Logarithm of the softmax denominator: [heads, queries]."""
        return (self.largest + xp.log(self.total))[..., 0]

    @staticmethod
    def from_output(output: Array, log_sum_exp: Array, xp: Any) -> "Partial":
        """The inverse of the two above: a result that was computed elsewhere."""
        largest = log_sum_exp[..., None]
        there = xp.astype(largest > -xp.inf, xp.float32)
        return Partial(largest, there, output * there)


def empty_partial(xp: Any, heads: int, queries: int, width: int) -> Partial:
    return Partial(
        xp.full((heads, queries, 1), -xp.inf, dtype=xp.float32),
        xp.zeros((heads, queries, 1), dtype=xp.float32),
        xp.zeros((heads, queries, width), dtype=xp.float32),
    )


def partial_of(xp: Any, logits: Array, values: Array) -> tuple[Partial, Array]:
    """Attention over one tile, and exp(logit - largest) of each token.

    Logits [heads, queries, tokens] are minus infinity where a token does not count; its value must
    be finite all the same. Values are [heads, tokens, width].
    """
    largest = xp.max(logits, axis=-1, keepdims=True)
    weights = xp.exp(logits - _finite(xp, largest))
    total = tree_sum(xp, weights, -1)
    return Partial(largest, total, xp.matmul(weights, values)), weights


def merge_partials(xp: Any, left: Partial, right: Partial) -> Partial:
    """Log-sum-exp merge. A side without tokens leaves the other as it is, bit for bit."""
    largest = xp.maximum(left.largest, right.largest)
    shift = _finite(xp, largest)
    left_scale, right_scale = xp.exp(left.largest - shift), xp.exp(right.largest - shift)
    return Partial(
        largest,
        left.total * left_scale + right.total * right_scale,
        left.weighted * left_scale + right.weighted * right_scale,
    )


def _finite(xp: Any, largest: Array) -> Array:
    """0 in place of minus infinity, so that inf - inf does not occur."""
    return xp.where(largest == -xp.inf, xp.zeros_like(largest), largest)


TILE_TOKENS = 512  # tokens of a tile; every tile of a row is full, so bits do not depend on k


def attend_pages(
    reader: KvReader, query: Array, lists: PageLists, scale: float, *, want_mass: bool = False
) -> tuple[Partial, Array | None]:
    """Attention of one token's query [heads, query heads, key_dim] over its selected pages.

    The mass of each listed page, if wanted, is [heads, n, query heads].
    """
    xp, page_size = reader.namespace.xp, reader.page_size

    def keep_selected(part: PageLists, logits: Array) -> Array:
        """Minus infinity where a query head did not select the page."""
        if part.by_query is None:
            return logits
        heads, pages, queries = part.by_query.shape
        spread = xp.broadcast_to(part.by_query[:, :, None, :], (heads, pages, page_size, queries))
        allowed = xp.matrix_transpose(xp.reshape(spread, (heads, pages * page_size, queries)))
        return xp.where(allowed, logits, xp.full_like(logits, -xp.inf))

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

    def cut(part: Array | None) -> Array | None:
        if part is None:
            return None
        part = part[:, start : start + size]
        missing = size - part.shape[1]
        if not missing:
            return part
        zeros = xp.zeros((part.shape[0], missing, *part.shape[2:]), dtype=part.dtype)
        return xp.concat([part, zeros], axis=1)

    return PageLists(cut(lists.pages), cut(lists.valid), lists.counts, cut(lists.by_query))


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


def _page_weights(xp: Any, weights: Array, page_size: int) -> Array:
    """Sums over the tokens of each page: [heads, pages, queries]."""
    heads, queries, tokens = weights.shape
    by_page = xp.reshape(weights, (heads, queries, tokens // page_size, page_size))
    return xp.matrix_transpose(tree_sum(xp, by_page, -1)[..., 0])


def _masses(xp: Any, result: Partial, tiles: list[tuple[Array, Array]]) -> Array:
    """Probabilities from the weights of tiles: [heads, pages of all tiles, queries]."""
    total = xp.where(result.total == 0, xp.ones_like(result.total), result.total)
    finite = _finite(xp, result.largest)
    parts = [
        weights * xp.matrix_transpose(xp.exp(largest - finite) / total)
        for largest, weights in tiles
    ]
    return xp.concat(parts, axis=1)


QUERY_TILE = 16  # prompt tokens of a tile, aligned to their position in the sequence


def attend_causal(
    reader: KvReader, queries: Array, first: int, scale: float, *, want_mass: bool = False
) -> tuple[Array, Array, Array | None]:
    """Queries [tokens, heads, query heads, key_dim]; token i stands at ``first + i``.

    Gives outputs [tokens, heads, query heads, value_dim], log-sum-exps [tokens, heads, query
    heads] and, if wanted, the mass of each page summed over the tokens [heads, pages, query
    heads]. Tiles are aligned to positions, so cutting a prompt in chunks changes no bit.
    """
    xp = reader.namespace.xp
    outputs, sums, masses = [], [], []
    position, end = first, first + queries.shape[0]
    while position < end:
        stop = min(position - position % QUERY_TILE + QUERY_TILE, end)
        part = queries[position - first : stop - first]
        result, mass = _attend_tile(reader, part, position, scale, want_mass=want_mass)
        outputs.append(_by_token(xp, result.output(xp), position, part))
        sums.append(_by_token(xp, result.log_sum_exp(xp), position, part))
        if mass is not None:
            masses.append(mass)
        position = stop
    total = sum(masses[1:], masses[0]) if masses else None
    return xp.concat(outputs, axis=0), xp.concat(sums, axis=0), total


def _attend_tile(
    reader: KvReader, part: Array, position: int, scale: float, *, want_mass: bool
) -> tuple[Partial, Array | None]:
    """A full tile of query positions; rows without a query are zeros whose result nobody reads."""
    xp = reader.namespace.xp
    tokens, heads, group, width = part.shape
    offset = position % QUERY_TILE
    query = xp.zeros((heads, QUERY_TILE, group, width), dtype=xp.float32)
    query[:, offset : offset + tokens] = xp.permute_dims(part, (1, 0, 2, 3))
    query = xp.reshape(query, (heads, QUERY_TILE * group, width))
    first = position - offset
    stands = xp.arange(first, first + QUERY_TILE, dtype=xp.int64)
    stands = xp.reshape(xp.broadcast_to(stands[:, None], (QUERY_TILE, group)), (-1,))

    def see_the_past(lists: PageLists, logits: Array) -> Array:
        offsets = xp.arange(reader.page_size, dtype=xp.int64)
        keys = xp.reshape(lists.pages[..., None] * reader.page_size + offsets, (heads, 1, -1))
        return xp.where(keys <= stands[:, None], logits, xp.full_like(logits, -xp.inf))

    num_pages = (position + tokens - 1) // reader.page_size + 1
    lists = every_page(xp, heads, num_pages)
    result, mass = attend_tiles(reader, query, lists, scale, see_the_past, want_mass=want_mass)
    if mass is None:
        return result, None
    by_token = xp.reshape(mass, (heads, num_pages, QUERY_TILE, group))
    summed = tree_sum(xp, by_token[:, :, offset : offset + tokens], 2)[:, :, 0]
    later = xp.zeros((heads, reader.num_pages - num_pages, group), dtype=xp.float32)
    return result, xp.concat([summed, later], axis=1)


def _by_token(xp: Any, tile: Array, position: int, part: Array) -> Array:
    """[heads, positions * query heads, ...] -> [tokens, heads, query heads, ...]."""
    tokens, heads, group, _ = part.shape
    split = xp.reshape(tile, (heads, QUERY_TILE, group, *tile.shape[2:]))
    offset = position % QUERY_TILE
    return xp.permute_dims(split, (1, 0, *range(2, split.ndim)))[offset : offset + tokens]
