"""Ops that move elements and change none: reshape, permute, broadcast, join, split, flip.

A block is row-major, so a reshape moves nothing and is free; a permutation moves every byte unless
only axes of extent 1 change places.
"""

from math import prod
from typing import Any

import numpy as np

from tilewright.errors import KernelError
from tilewright.language.block_type import BlockType, block_type
from tilewright.language.meaning.bound import (
    Array,
    Bound,
    Charge,
    Meaning,
    Types,
    broadcast_shape,
    check_blocks,
    check_count,
    refuse,
    wrap_axis,
)


def _moved(op: str, result: BlockType) -> tuple[Charge, ...]:
    return (Charge(op, result.num_elements, result.dtype),)


def _checked_shape(op: str, shape: Any) -> tuple[int, ...]:
    for extent in shape:
        check_count(op, "an extent of the shape", extent)
    return tuple(shape)


def _bind_reshape(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    shape = _checked_shape(op, attributes[0])
    if prod(shape) != types[0].num_elements:
        expected = f"a block of {prod(shape)} elements for the shape {shape}"
        refuse(op, types, expected, "keep the number of elements")
    return Bound(types[0].with_shape(shape), lambda array: array.reshape(shape), ())


def _bind_expand_dims(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """``axes``: one or several, counted in the result."""
    given = attributes[0] if isinstance(attributes[0], (tuple, list)) else (attributes[0],)
    rank = types[0].rank + len(given)
    axes = sorted(wrap_axis(op, types, axis, rank) for axis in given)
    if len(set(axes)) != len(axes):
        raise KernelError(op, f"the axes {tuple(given)}", "each axis once", "drop one of them")
    extents = iter(types[0].shape)
    shape = tuple(1 if axis in axes else next(extents) for axis in range(rank))
    return Bound(types[0].with_shape(shape), lambda array: array.reshape(shape), ())


def _bind_squeeze(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    axis = wrap_axis(op, types, attributes[0], types[0].rank)
    if types[0].shape[axis] != 1:
        refuse(op, types, f"an extent of 1 at axis {axis}", "squeeze another axis")
    shape = types[0].shape[:axis] + types[0].shape[axis + 1 :]
    return Bound(types[0].with_shape(shape), lambda array: array.reshape(shape), ())


def _bind_broadcast_to(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    shape = _checked_shape(op, attributes[0])
    source = types[0].shape
    fits = not source or (
        len(source) == len(shape) and all(a in (1, b) for a, b in zip(source, shape, strict=True))
    )
    if not fits:
        expected = f"a scalar, or extents that are 1 or those of {shape}"
        refuse(op, types, expected, "add axes with [:, None] first")
    return Bound(types[0].with_shape(shape), lambda array: np.broadcast_to(array, shape), ())


def _bind_permute(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """``trans`` without axes swaps the last two."""
    rank = types[0].rank
    given = tuple(attributes[0] or ())
    if not given and op == "trans":
        if rank < 2:
            refuse(op, types, "a block with two axes or more", "add an axis with [:, None]")
        given = (*range(rank - 2), rank - 1, rank - 2)
    if sorted(given) != list(range(rank)):
        expected = f"each of the axes 0 to {rank - 1} once"
        raise KernelError(op, f"the axes {given} of {types[0]}", expected, "list them all")
    result = types[0].with_shape(tuple(types[0].shape[axis] for axis in given))
    stays = [axis for axis in given if types[0].shape[axis] > 1]
    charges = () if stays == sorted(stays) else _moved(op, result)
    transposes = bool(charges) and given == (*range(rank - 2), rank - 1, rank - 2)
    return Bound(result, lambda array: array.transpose(given), charges, transposes=transposes)


def _bind_join(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    """Two blocks as a new last axis; ``interleave`` merges it with the one before."""
    dtype = _one_dtype(op, types)
    shape = broadcast_shape(op, types)
    joined = (*shape, 2)
    result = joined
    if op == "interleave" and shape:
        result = (*shape[:-1], 2 * shape[-1])

    def run(left: Array, right: Array) -> Array:
        block = np.empty(joined, dtype.storage)
        block[..., 0] = left
        block[..., 1] = right
        return block.reshape(result)

    result_type = block_type(dtype, result)
    return Bound(result_type, run, _moved("interleave", result_type))


def _one_dtype(op: str, types: Types) -> Any:
    if types[0].dtype is not types[1].dtype:
        refuse(op, types, "blocks of one dtype", "cast one of them")
    return types[0].dtype


def _bind_split(op: str, types: Types, _: tuple[Any, ...]) -> Bound:
    (only,) = types
    if not only.shape or only.shape[-1] != 2:
        refuse(op, types, "a last axis of 2", "reshape the block to (..., 2) first")
    half = only.with_shape(only.shape[:-1])
    return Bound((half, half), lambda array: (array[..., 0], array[..., 1]), _moved(op, only))


def _bind_cat(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    """Blocks of one shape, one after the other along ``axis``."""
    dtype = _one_dtype(op, types)
    check_blocks(op, types)
    axis = wrap_axis(op, types, attributes[0], types[0].rank)
    shape = list(types[0].shape)
    shape[axis] *= 2
    result = block_type(dtype, tuple(shape))
    run = lambda left, right: np.concatenate((left, right), axis=axis)  # noqa: E731
    return Bound(result, run, _moved(op, result))


def _bind_flip(op: str, types: Types, attributes: tuple[Any, ...]) -> Bound:
    given = -1 if attributes[0] is None else attributes[0]
    axis = wrap_axis(op, types, given, types[0].rank)
    return Bound(types[0], lambda array: np.flip(array, axis), _moved(op, types[0]))


SHAPES: tuple[Meaning, ...] = (
    Meaning("reshape", (1,), ("shape",), _bind_reshape),
    Meaning("expand_dims", (1,), ("axes",), _bind_expand_dims),
    Meaning("squeeze", (1,), ("axis",), _bind_squeeze),
    Meaning("broadcast_to", (1,), ("shape",), _bind_broadcast_to),
    Meaning("trans", (1,), ("axes",), _bind_permute),
    Meaning("permute", (1,), ("axes",), _bind_permute),
    Meaning("join", (2,), (), _bind_join),
    Meaning("interleave", (2,), (), _bind_join),
    Meaning("split", (1,), (), _bind_split),
    Meaning("cat", (2,), ("axis",), _bind_cat),
    Meaning("flip", (1,), ("axis",), _bind_flip),
)
