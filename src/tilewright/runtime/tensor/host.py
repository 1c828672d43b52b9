"""The elements of a tensor on the host."""

from typing import Any

import numpy as np

from tilewright.runtime.placement.divide import Box

Array = np.ndarray[Any, Any]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class HostStorage:
    """An array of its own. No access takes simulated time."""

    has_values = True

    def __init__(self, array: Array) -> None:
        self._array = array.copy(order="C")

    def read(self, box: Box, *, timed: bool) -> Array:  # noqa: ARG002 -- as of a device
        """A copy of the elements of a box."""
        return np.array(self._array[_index(box)])

    def write(self, box: Box, array: Array, *, timed: bool, mask: Mask | None = None) -> None:  # noqa: ARG002
        """The elements of a box; with a mask, only where it is true."""
        np.copyto(self._array[_index(box)], array, where=True if mask is None else mask)


def _index(box: Box) -> tuple[Any, ...]:
    return (*(slice(extent.start, extent.stop) for extent in box), ...)  # of a scalar: an array
