"""Elements of four bits: NumPy keeps one a byte, memory two, the lower half first."""

from typing import Any

import numpy as np

from tilewright.language.dtype import DType, int4

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def halves_of_bytes(data: Bytes) -> Bytes:
    """The halves of bytes, each as a byte from 0 to 15."""
    flat = data.reshape(-1)
    halves = np.empty(2 * flat.size, np.uint8)
    halves[0::2] = flat & 15
    halves[1::2] = flat >> 4
    return halves


def elements_of_bytes(data: Bytes, dtype: DType, count: int) -> np.ndarray[Any, Any]:
    """The first elements that bytes hold, as memory has them."""
    if dtype is not int4:
        return data.reshape(-1).view(dtype.storage)[:count]
    return int4_of_halves(halves_of_bytes(data)[:count])


def int4_of_halves(halves: Bytes) -> np.ndarray[Any, Any]:
    """As signed elements, in two's complement."""
    signed = (halves << 4).view(np.int8) >> 4
    return signed.astype(int4.storage)


def halves_of_int4(elements: np.ndarray[Any, Any]) -> Bytes:
    """The reverse."""
    return elements.astype(np.int8).view(np.uint8) & np.uint8(15)


def packed_halves(halves: Bytes) -> Bytes:
    """The bytes of an even number of halves."""
    return halves[0::2] | (halves[1::2] << np.uint8(4))


def bytes_of_elements(elements: np.ndarray[Any, Any], dtype: DType) -> Bytes:
    """As memory has them; of an odd number of halves the last byte's upper one is zero.

    >>> bytes_of_elements(np.array([1, -1, 7], int4.storage), int4).tolist()
    [241, 7]
    """
    flat = np.ascontiguousarray(elements).reshape(-1)
    if dtype is not int4:
        return flat.view(np.uint8)
    halves = np.zeros(flat.size + flat.size % 2, np.uint8)
    halves[: flat.size] = halves_of_int4(flat)
    return packed_halves(halves)
