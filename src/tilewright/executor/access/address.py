"""The addresses of an access: their shape beside masks and values, and their numbers."""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.language.affine import Affine, broadcast_shapes
from tilewright.language.dtype import int4
from tilewright.language.executor import Executor
from tilewright.language.pointer import is_integer, no_dtype
from tilewright.language.scalar import Int1
from tilewright.language.value import Mask, Pointers


def aligned(
    program: Executor, pointers: Any, mask: Any, value_shape: tuple[int, ...] = ()
) -> tuple[Pointers, Any]:
    """Addresses and mask of one shape; the mask is False where nothing at all is accessed."""
    if type(pointers) is not Pointers:
        if is_integer(pointers):
            raise no_dtype(program, pointers)
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
    program: Executor, shape: tuple[int, ...], other: tuple[int, ...], what: str
) -> tuple[int, ...]:
    if not shape and other:
        found = f"{what} of shape {other} with a single address"
        raise program.error(found, "a block of addresses", "add offsets to the pointer")
    return broadcast_shapes(shape, other)


def _spread_pointers(program: Executor, pointers: Pointers, shape: tuple[int, ...]) -> Pointers:
    if shape == pointers.affine.shape:
        return pointers
    affine = pointers.affine.broadcast(shape)
    return Pointers(program, affine, pointers.element, pointers.offsets)


def _as_mask(program: Executor, mask: Any) -> Any:
    """A mask that lets all through is none; one that lets nothing through is False."""
    if isinstance(mask, bool | Int1):
        return None if mask else False
    block = program.block(mask)
    if not block.dtype.is_bool():
        found = f"a mask of {block.type}"
        raise program.error(found, "a mask of truth values", "compare it with a number")
    return block


def addresses_of(program: Executor, pointers: Pointers, mask: Any) -> tuple[Any, Any]:
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


class Items(NamedTuple):
    """Neighbouring elements that lie together: where items begin, and their places in the block."""

    addresses: Any  # one for each item
    num_elements: int  # of an item
    places: Any  # of all elements, in the order of items


def items_of(program: Executor, pointers: Pointers, mask: Any) -> Items:
    """What an access by computed offsets reaches, in items as large as its form tells.

    The rows of a table by an index are an item each; nobody looks at their elements one by one.
    """
    outer = _num_outer_axes(pointers, mask)
    num_elements = prod(pointers.shape[outer:])
    if num_elements == 1 or pointers.offsets is None:
        addresses, places = addresses_of(program, pointers, mask)
        return Items(addresses, 1, places)
    shape = pointers.shape[:outer]
    affine = Affine(pointers.affine.base, pointers.affine.strides[:outer], shape)
    offsets = program.elements(pointers.offsets).astype(np.int64) * pointers.element.step
    offsets = offsets.reshape(offsets.shape[: max(0, offsets.ndim - len(pointers.shape) + outer)])
    addresses = np.broadcast_to(affine.array(np.dtype(np.int64)) + offsets, shape)
    if mask is None:
        return Items(addresses.reshape(-1), num_elements, slice(None))
    low, high = mask.box.low[0], mask.box.high[0]
    of_a_row = num_elements * prod(shape[1:])
    rows = addresses[low:high].reshape(-1)
    return Items(rows, num_elements, slice(low * of_a_row, high * of_a_row))


def _num_outer_axes(pointers: Pointers, mask: Any) -> int:
    """Axes before those along which elements lie side by side, whatever the offsets are."""
    shape, strides = pointers.shape, pointers.affine.strides
    if pointers.offsets is None or pointers.element is int4 or not _cuts_first_axis_only(mask):
        return len(shape)
    extents = (*[1] * (len(shape) - len(pointers.offsets.shape)), *pointers.offsets.shape)
    outer, wanted = len(shape), pointers.element.step
    first = 0 if mask is None else 1
    while outer > first and extents[outer - 1] == 1:
        extent = shape[outer - 1]
        if extent != 1 and strides[outer - 1] != wanted:
            break
        wanted *= extent
        outer -= 1
    return outer


def _cuts_first_axis_only(mask: Any) -> bool:
    if mask is None:
        return True
    if type(mask) is not Mask or not mask.shape:
        return False
    box = mask.box
    return all(
        low == 0 and high == extent
        for low, high, extent in zip(box.low[1:], box.high[1:], box.shape[1:], strict=True)
    )
