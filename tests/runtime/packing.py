"""What the bytes of a tensor must be, told element by element from its placement alone."""

from typing import Any

import numpy as np

from tilewright.executor.layout import bytes_of_elements
from tilewright.runtime.placement.placement import Part, Placement, Shard

__all__ = ("image_of", "index_of", "shard_bytes")

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def index_of(part: Part) -> tuple[slice, ...]:
    """A part's box, of the tensor as an array."""
    return tuple(slice(extent.start, extent.stop) for extent in part.box)


def image_of(placement: Placement, array: Array) -> Bytes:
    """The virtual range of a tensor: its parts one after the other, each packed by rows."""
    images = [bytes_of_elements(array[index_of(part)], placement.dtype) for part in placement.parts]
    return np.concatenate([np.empty(0, np.uint8), *images])


def shard_bytes(placement: Placement, array: Array, shard: Shard) -> Bytes:
    """What a PE has of an array, its ranges one after the other."""
    image = image_of(placement, array)
    return np.concatenate([image[run.start : run.stop] for run in shard.ranges])
