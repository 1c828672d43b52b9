"""Products: tile by tile along the pages, never across requests."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from tilewright.attention.backends.reference.namespace import Array, as_float, as_numbers, tree_sum
from tilewright.attention.backends.reference.op.frame import EvaluatorTable, Frame
from tilewright.attention.backends.reference.pages import PagedField, whole
from tilewright.attention.graph import Side, Types
from tilewright.attention.ops import linear

INDEXER_TILE = 512  # pages of a product at a time: a tile of 128 channels stays in the cache
CACHE_TILE = 16

Operand: TypeAlias = Any  # an array, or a field that is read tile by tile


def _gemm(frame: Frame, _op: linear.GeMM, types: Types, x: Operand, y: Operand) -> Array:
    if len(types[1].shape) == 3:
        return _gemm_with_heads(whole(x), y, frame)
    operands = [  # missing tokens add nothing to a sum over tokens
        frame.without_missing(whole(value), value_type, 2, 0)
        if 2 in value_type.token_axes and not frame.pages.is_full
        else value
        for value, value_type in zip((x, y), types, strict=True)
    ]
    return _in_tiles(_product, operands, frame)


def _product(x: Array, y: Array, frame: Frame) -> Array:
    """y x^T for one tile: the per-row operand is one matrix, so a tile is one product a head."""
    xp = frame.namespace.xp
    x, y = as_numbers(xp, x, y)
    if x.shape[1] == 1 and y.shape[1] != 1:
        heads, pages, rows, width = y.shape
        flat = xp.reshape(y, (heads, pages * rows, width))
        out = xp.matmul(flat, xp.matrix_transpose(x[:, 0]))
        return xp.reshape(out, (out.shape[0], pages, rows, x.shape[2]))
    if y.shape[1] == 1 and x.shape[1] != 1:
        return xp.matrix_transpose(_product(y, x, frame))
    return xp.matmul(y, xp.matrix_transpose(x))


def _gemm_with_heads(x: Array, weights: Array, frame: Frame) -> Array:
    """Weights [heads, Ny, K] on x [., heads * Nx, K]: head by head, to [., heads * Ny, Nx]."""
    xp = frame.namespace.xp
    heads, rows, width = weights.shape[2:]

    def product(part: Array, _frame: Frame) -> Array:
        split = xp.reshape(part, (*part.shape[:2], heads, part.shape[2] // heads, width))
        out = xp.matmul(as_float(xp, weights), xp.matrix_transpose(as_float(xp, split)))
        return xp.reshape(out, (*out.shape[:2], heads * rows, out.shape[-1]))

    return _in_tiles(product, (x,), frame)


def _in_tiles(product: Any, operands: Sequence[Operand], frame: Frame) -> Array:
    """Run a product over tiles of pages.

    On the cache side a short tile is filled up with zeros: how many pages are complete at once
    must not show in any bit of them.
    """
    xp = frame.namespace.xp
    num_pages = max(_num_pages(value) for value in operands)
    if num_pages == 1 and frame.side is Side.INDEXER:
        return product(*(whole(value) for value in operands), frame)
    size = CACHE_TILE if frame.side is Side.CACHE else INDEXER_TILE
    parts = []
    for start in range(0, num_pages, size):
        stop = min(start + size, num_pages)
        tiles = [_tile(value, start, stop) for value in operands]
        if frame.side is Side.CACHE:
            tiles = [_filled_up(xp, tile, stop - start, size) for tile in tiles]
        parts.append(product(*tiles, frame)[:, : stop - start])
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)


def _filled_up(xp: Any, tile: Array, num_pages: int, size: int) -> Array:
    """A tile of values per row has one page and stays."""
    if tile.shape[1] == size or (tile.shape[1] == 1 and num_pages != 1):
        return tile
    missing = xp.zeros((tile.shape[0], size - tile.shape[1], *tile.shape[2:]), dtype=tile.dtype)
    return xp.concat([tile, missing], axis=1)


def _num_pages(value: Operand) -> int:
    return value.num_pages if isinstance(value, PagedField) else int(value.shape[1])


def _tile(value: Operand, start: int, stop: int) -> Array:
    if isinstance(value, PagedField):
        return value.rows(start, stop)
    return value if value.shape[1] == 1 else value[:, start:stop]


def _kron(frame: Frame, op: linear.Kron, _types: Types, x: Array, y: Array) -> Array:
    """Six axes: rows of x and y, columns of x and y; an axis that broadcasts stays one axis."""
    xp = frame.namespace.xp
    x, y = as_numbers(xp, x, y)
    rows = (1, y.shape[2]) if 1 in op.dim else (y.shape[2], 1)
    columns = (1, y.shape[3]) if 2 in op.dim else (y.shape[3], 1)
    x = xp.reshape(x, (*x.shape[:3], 1, x.shape[3], 1))
    product = x * xp.reshape(y, (*y.shape[:2], *rows, *columns))
    heads, pages, a, b, c, d = product.shape
    return xp.reshape(product, (heads, pages, a * b, c * d))


def _factor_score(frame: Frame, op: linear.FactorScore, _types: Types, *operands: Operand) -> Array:
    q, weights, descriptors = operands
    xp = frame.namespace.xp
    projected = xp.matmul(q[:, :, :, None, :], weights)  # [., 1, heads, 1, rank]

    def score(tile: Array, frame: Frame) -> Array:
        shape = (*tile.shape[:2], op.heads, op.descriptors, op.rank)
        dots = xp.matmul(xp.reshape(tile, shape), xp.matrix_transpose(projected))
        best = xp.max(dots, axis=3)
        return tree_sum(frame.namespace.xp, best, 2)

    return _in_tiles(score, (descriptors,), frame)


def _learned_descriptor(
    frame: Frame, op: linear.LearnedDescriptor, types: Types, *operands: Operand
) -> Array:
    x, token_weights, key_weights = operands
    xp = frame.namespace.xp
    x = frame.without_missing(whole(x), types[0], 1, 0)

    def describe(tile: Array, _frame: Frame) -> Array:
        pooled = xp.matmul(xp.matrix_transpose(token_weights), tile[:, :, None])
        found = xp.matmul(pooled, key_weights)
        return xp.reshape(found, (*found.shape[:2], op.heads * op.descriptors, op.rank))

    return _in_tiles(describe, (x,), frame)


LINEAR: EvaluatorTable = {
    linear.GeMM: _gemm,
    linear.Kron: _kron,
    linear.FactorScore: _factor_score,
    linear.LearnedDescriptor: _learned_descriptor,
}
PAGED_OPERANDS = frozenset({linear.GeMM, linear.FactorScore, linear.LearnedDescriptor})
"""Ops that take a field as it lies in pages and gather it themselves."""
