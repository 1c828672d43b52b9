"""Products: tile by tile along the pages, never across requests."""

from typing import Any, TypeAlias

from tilewright.attention.backends.reference.evaluator import EvaluatorTable
from tilewright.attention.backends.reference.frame import Frame
from tilewright.attention.backends.reference.namespace import Array
from tilewright.attention.backends.reference.paged import PagedField
from tilewright.attention.backends.reference.summation import tree_sum
from tilewright.attention.graph import Side, Types
from tilewright.attention.ops import linear

INDEXER_TILE = 512  # pages of a product at a time: a tile of 128 channels stays in the cache
CACHE_TILE = 16

Operand: TypeAlias = Any  # an array, or a field that is read tile by tile


def _gemm(_op: linear.GeMM, operands: tuple[Operand, ...], types: Types, frame: Frame) -> Array:
    x, y = operands
    if len(types[1].shape) == 3:
        return _gemm_with_heads(_whole(x), y, frame)
    x, y = (
        _for_product(value, value_type, frame)
        for value, value_type in zip((x, y), types, strict=True)
    )
    return _in_tiles(_product, (x, y), frame)


def _for_product(value: Operand, value_type: Any, frame: Frame) -> Operand:
    """Missing tokens add nothing to a sum over tokens; other operands stay as they are."""
    if 2 in value_type.token_axes and not frame.pages.is_full:
        return frame.without_missing(_whole(value), value_type, 2, 0)
    return value


def _product(x: Array, y: Array, frame: Frame) -> Array:
    """y x^T for one tile: the per-row operand is one matrix, so a tile is one product a head."""
    xp = frame.namespace.xp
    x, y = _common_dtype(xp, x, y)
    if x.shape[1] == 1 and y.shape[1] != 1:
        heads, pages, rows, width = y.shape
        flat = xp.reshape(y, (heads, pages * rows, width))
        out = xp.matmul(flat, xp.matrix_transpose(x[:, 0]))
        return xp.reshape(out, (out.shape[0], pages, rows, x.shape[2]))
    if y.shape[1] == 1 and x.shape[1] != 1:
        return xp.matrix_transpose(_product(y, x, frame))
    return xp.matmul(y, xp.matrix_transpose(x))


def _common_dtype(xp: Any, x: Array, y: Array) -> tuple[Array, Array]:
    if x.dtype == xp.int32 and y.dtype == xp.int32:
        return x, y
    return xp.astype(x, xp.float32, copy=False), xp.astype(y, xp.float32, copy=False)


def _gemm_with_heads(x: Array, weights: Array, frame: Frame) -> Array:
    """Weights [heads, Ny, K] on x [., heads * Nx, K]: head by head, to [., heads * Ny, Nx]."""
    xp = frame.namespace.xp
    heads, rows, width = weights.shape[2:]

    def product(part: Array, frame: Frame) -> Array:
        split = xp.reshape(part, (*part.shape[:2], heads, part.shape[2] // heads, width))
        out = xp.matmul(
            frame.namespace.xp.astype(weights, xp.float32, copy=False),
            xp.matrix_transpose(xp.astype(split, xp.float32, copy=False)),
        )
        return xp.reshape(out, (*out.shape[:2], heads * rows, out.shape[-1]))

    return _in_tiles(product, (x,), frame)


def _in_tiles(product: Any, operands: tuple[Operand, ...], frame: Frame) -> Array:
    """Run a product over tiles of pages.

    On the cache side a short tile is filled up with zeros: how many pages are complete at once
    must not show in any bit of them.
    """
    xp = frame.namespace.xp
    num_pages = max(_num_pages(value) for value in operands)
    if num_pages == 1 and frame.side is Side.INDEXER:
        return product(*(_whole(value) for value in operands), frame)
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


def _whole(value: Operand) -> Array:
    return value.whole() if isinstance(value, PagedField) else value


def _tile(value: Operand, start: int, stop: int) -> Array:
    if isinstance(value, PagedField):
        return value.rows(start, stop)
    return value if value.shape[1] == 1 else value[:, start:stop]


def _kron(op: linear.Kron, operands: tuple[Array, ...], _types: Types, frame: Frame) -> Array:
    """Six axes: rows of x and y, columns of x and y; an axis that broadcasts stays one axis."""
    xp = frame.namespace.xp
    x, y = _common_dtype(xp, *operands)
    rows = (1, y.shape[2]) if 1 in op.dim else (y.shape[2], 1)
    columns = (1, y.shape[3]) if 2 in op.dim else (y.shape[3], 1)
    x = xp.reshape(x, (*x.shape[:3], 1, x.shape[3], 1))
    product = x * xp.reshape(y, (*y.shape[:2], *rows, *columns))
    heads, pages, a, b, c, d = product.shape
    return xp.reshape(product, (heads, pages, a * b, c * d))


def _factor_score(
    op: linear.FactorScore, operands: tuple[Operand, ...], _types: Types, frame: Frame
) -> Array:
    xp = frame.namespace.xp
    q, weights, descriptors = operands
    projected = xp.matmul(q[:, :, :, None, :], weights)  # [., 1, heads, 1, rank]

    def score(tile: Array, frame: Frame) -> Array:
        shape = (*tile.shape[:2], op.heads, op.descriptors, op.rank)
        dots = xp.matmul(xp.reshape(tile, shape), xp.matrix_transpose(projected))
        best = xp.max(dots, axis=3)
        return tree_sum(frame.namespace.xp, best, 2)

    return _in_tiles(score, (descriptors,), frame)


def _learned_descriptor(
    op: linear.LearnedDescriptor, operands: tuple[Operand, ...], types: Types, frame: Frame
) -> Array:
    xp = frame.namespace.xp
    x, token_weights, key_weights = operands
    x = frame.without_missing(_whole(x), types[0], 1, 0)

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
