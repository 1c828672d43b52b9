"""Other looks at a block: axes added, moved, spread; blocks put together and apart."""

from math import prod
from typing import Any

from tilewright.language.affine import broadcast_shapes
from tilewright.language.executor import carry_out, current_program
from tilewright.language.front import planned
from tilewright.language.value import Index, Mask, Pointers


def _tuple_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Triton takes ``reshape(x, (a, b))`` and ``reshape(x, a, b)``."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else args


@planned
def expand_dims(input: Any, axis: Any) -> Any:
    """New axes of extent 1, at these places of the result."""
    program = current_program()
    axes = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    rank = len(input.shape) + len(axes)
    for each in sorted(place % rank for place in axes):
        input = program.expand(input, each)
    return input


def unsqueeze(x: Any, dim: int) -> Any:
    """One new axis of extent 1."""
    return expand_dims(x, dim)


@planned
def squeeze(x: Any, dim: int) -> Any:
    """Without an axis of extent 1."""
    return carry_out("squeeze", (x,), dim)


@planned
def broadcast_to(input: Any, *shape: Any) -> Any:
    """Spread over a shape."""
    program = current_program()
    extents = program.extents(_tuple_of(shape))
    if isinstance(input, Index | Mask | Pointers):
        if broadcast_shapes(input.shape, extents) != extents:
            found = f"{input.shape} spread over {extents}"
            raise program.error(found, "a shape that it fits", "make extents equal, or 1")
        return program.spread(input, extents)
    return carry_out("broadcast_to", (input,), extents)


def broadcast(input: Any, other: Any) -> Any:
    """Both over the shape that both fit."""
    shape = broadcast_shapes(input.shape, other.shape)
    return broadcast_to(input, shape), broadcast_to(other, shape)


@planned
def reshape(input: Any, *shape: Any, can_reorder: bool = False) -> Any:
    """The same elements in row-major order under another shape; -1 stands for what is left."""
    program = current_program()
    extents = _resolved(program, input.shape, _tuple_of(shape))
    if isinstance(input, Index):
        old, new = ([extent for extent in each if extent > 1] for each in (input.shape, extents))
        if old == new:
            return program.reshaped(input, extents)
    return carry_out("reshape", (input,), extents)


def _resolved(program: Any, old: tuple[int, ...], shape: tuple[Any, ...]) -> tuple[int, ...]:
    extents = list(shape)
    if extents.count(-1) == 1:
        rest = prod(extent for extent in extents if extent != -1)
        extents[extents.index(-1)] = prod(old) // max(1, rest)
    found = program.extents(tuple(extents))
    if prod(found) != prod(old):
        raise program.error(f"{old} as {shape}", "as many elements", "correct the shape")
    return tuple(found)


def view(input: Any, *shape: Any) -> Any:
    """As ``reshape``."""
    return reshape(input, *shape)


def ravel(x: Any, can_reorder: bool = False) -> Any:
    """All elements on one axis."""
    return reshape(x, prod(x.shape))


@planned
def permute(input: Any, *dims: Any) -> Any:
    """Axes in another order."""
    return _permuted("permute", input, _tuple_of(dims))


@planned
def trans(input: Any, *dims: Any) -> Any:
    """Axes in another order; without one, the last two swapped."""
    order = _tuple_of(dims)
    if not order:
        rank = len(input.shape)
        order = (*range(rank - 2), rank - 1, rank - 2)
    return _permuted("trans", input, order)


def _permuted(op: str, input: Any, order: tuple[Any, ...]) -> Any:
    program = current_program()
    axes = tuple(int(axis) % max(1, len(input.shape)) for axis in order)
    if sorted(axes) != list(range(len(input.shape))):
        found = f"the axes {order} of the shape {input.shape}"
        raise program.error(found, "every axis once", "correct the order")
    if isinstance(input, Index):
        return Index(program, input.affine.permuted(axes), input.dtype)
    if isinstance(input, Pointers) and input.offsets is None:
        return Pointers(program, input.affine.permuted(axes), input.element)
    return carry_out(op, (input,), axes)


@planned
def flip(x: Any, dim: int | None = None) -> Any:
    """Elements of an axis from last to first; of the only axis if none is named."""
    return carry_out("flip", (x,), -1 if dim is None else dim)


@planned
def join(a: Any, b: Any) -> Any:
    """Two blocks on a new last axis."""
    program = current_program()
    return program.compute("join", (program.block(a, b), program.block(b, a)))


@planned
def interleave(a: Any, b: Any) -> Any:
    """Elements of two blocks in turn, on the last axis."""
    program = current_program()
    return program.compute("interleave", (program.block(a, b), program.block(b, a)))


def split(a: Any) -> Any:
    """The two halves of a last axis of extent 2."""
    return carry_out("split", (a,))


@planned
def cat(input: Any, other: Any, can_reorder: bool = False, dim: int = 0) -> Any:
    """Two blocks one after the other on an axis."""
    return carry_out("cat", (input, other), dim)
