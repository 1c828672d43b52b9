"""Dense causal attention of a prompt: many queries at once, each over what stands before it."""

from typing import Any

from tilewright.attention.backends.reference.decode import attend_tiles
from tilewright.attention.backends.reference.kv import KvReader
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.page_list import PageLists, every_page
from tilewright.attention.backends.reference.softmax import Partial
from tilewright.attention.backends.reference.summation import tree_sum

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
