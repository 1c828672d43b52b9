"""The addresses of an access: their shape beside masks and values, and their numbers."""

from typing import Any

import numpy as np

from tilewright.language.affine import broadcast_shapes
from tilewright.language.program import Program
from tilewright.language.value import Mask, Pointers

__all__ = ("addresses_of", "aligned")


def aligned(
    program: Program, pointers: Any, mask: Any, value_shape: tuple[int, ...] = ()
) -> tuple[Pointers, Any]:
    """Addresses and mask of one shape; the mask is False where nothing at all is accessed."""
    if type(pointers) is not Pointers:
        fix = "pass a tensor argument plus offsets"
        raise program.error(f"{pointers!r} as the address", "pointers", fix)
    shape = pointers.affine.shape
    if mask is not None and type(mask) is not Mask:
        mask = _as_mask(program, mask)
    if value_shape and value_shape != shape:
        shape = _joined(program, shape, value_shape, "values")
    if mask is None or mask is False:
        return _spread_pointers(program, pointers, shape), mask
    if mask.shape != shape:
        shape = _joined(program, shape, mask.shape, "a mask")
        if type(mask) is Mask and mask.box.shape != shape:
            mask = Mask(program, mask.box.broadcast(shape))
    return _spread_pointers(program, pointers, shape), mask


def _joined(
    program: Program, shape: tuple[int, ...], other: tuple[int, ...], what: str
) -> tuple[int, ...]:
    if not shape and other:
        found = f"{what} of shape {other} with a single address"
        raise program.error(found, "a block of addresses", "add offsets to the pointer")
    return broadcast_shapes(shape, other)


def _spread_pointers(program: Program, pointers: Pointers, shape: tuple[int, ...]) -> Pointers:
    if shape == pointers.affine.shape:
        return pointers
    affine = pointers.affine.broadcast(shape)
    return Pointers(program, affine, pointers.element, pointers.offsets)


def _as_mask(program: Program, mask: Any) -> Any:
    """A mask that lets all through is none; one that lets nothing through is False."""
    if isinstance(mask, bool):
        return None if mask else False
    block = program.block(mask)
    if not block.dtype.is_bool():
        found = f"a mask of {block.type}"
        raise program.error(found, "a mask of truth values", "compare it with a number")
    return block


def addresses_of(program: Program, pointers: Pointers, mask: Any) -> tuple[Any, Any]:
    """Of the places that the mask lets through, in order; and which places those are."""
    storage = np.dtype(np.int64)
    addresses = pointers.affine.array(storage)
    if pointers.offsets is not None:
        step = pointers.element.step
        addresses = addresses + program.elements(pointers.offsets).astype(storage) * step
    flat = addresses.reshape(-1)
    if mask is None:
        return flat, slice(None)
    places = np.broadcast_to(program.elements(mask), pointers.shape).reshape(-1)
    return flat[places], places
