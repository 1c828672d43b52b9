"""Between an array of the host and the bytes of a tensor's virtual range and of its shards.

Elements are moved part by part, a whole box at a time.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tilewright.errors import InternalError
from tilewright.language.packing import bytes_of_elements, elements_of_bytes
from tilewright.runtime.placement import Part, Placement, Shard

__all__ = ("Array", "Bytes", "assemble", "pack", "part_bytes", "shard_bytes", "unpack")

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def pack(placement: Placement, array: Array) -> Bytes:
    """The virtual range of a tensor with the elements of an array."""
    _check_array(placement, array)
    if placement.is_row_major:
        return bytes_of_elements(array, placement.dtype)
    image = np.empty(placement.num_bytes, np.uint8)
    for part in placement.parts:
        image[part.offset : part.span.stop] = part_bytes(placement, array, part)
    return image


def unpack(placement: Placement, image: Bytes) -> Array:
    """The reverse."""
    array = np.empty(placement.shape, placement.dtype.storage)
    for part in placement.parts:
        data = image[part.offset : part.span.stop]
        elements = elements_of_bytes(data, placement.dtype, array[part.index].size)
        array[part.index] = elements.reshape(part.shape)
    return array


def part_bytes(placement: Placement, array: Array, part: Part) -> Bytes:
    """The packed elements of a part."""
    return bytes_of_elements(array[part.index], placement.dtype)


def shard_bytes(placement: Placement, array: Array, shard: Shard) -> Bytes:
    """What a PE gets of an array, its ranges one after the other."""
    _check_array(placement, array)
    data = part_bytes(placement, array, shard.part)
    start = shard.part.offset
    return np.concatenate([data[run.start - start : run.stop - start] for run in shard.ranges])


def assemble(placement: Placement, pieces: Iterable[tuple[Shard, Bytes]]) -> Array:
    """The array whose shards have these bytes. Of replicas the last one counts."""
    image = np.empty(placement.num_bytes, np.uint8)
    missing = {shard.offset for shard in placement.owners}
    for shard, data in pieces:
        done = 0
        for run in shard.ranges:
            image[run.start : run.stop] = data[done : done + len(run)]
            done += len(run)
        missing.discard(shard.offset)
    if missing:
        found = f"no bytes of the shards at {sorted(missing)}"
        raise InternalError(placement.where, found, "a copy of every shard", "read them all")
    return unpack(placement, image)


def _check_array(placement: Placement, array: Array) -> None:
    storage = placement.dtype.storage
    if array.shape != placement.shape or array.dtype != storage:
        found = f"{array.dtype} elements of shape {array.shape}"
        expected = f"{storage} of shape {placement.shape}"
        raise InternalError(placement.where, found, expected, "convert the array first")
