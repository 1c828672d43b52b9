"""The bytes of a store that were written: arenas, parts of accesses in them, filled chunks."""

import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8  # a multiple of every element's size
ZERO_WORD = bytes(WORD_BYTES)

Bytes = npt.NDArray[np.uint8]
BYTE = np.dtype(np.uint8)


def word_of(element: bytes, address: int) -> bytes | None:
    """Return the word whose byte ``a % 8`` is that of address ``a``, if elements begin at address.

    None if an element does not fit a word a whole number of times.

    >>> word_of(b"ab", address=3)
    b'babababa'
    """
    if not element or WORD_BYTES % len(element):
        return None
    phase = -address % len(element)
    whole = element * (WORD_BYTES // len(element) + 1)
    return whole[phase : phase + WORD_BYTES]


def repeated_word(word: bytes, address: int, num_bytes: int) -> Bytes:
    """Return bytes from an address on that are filled with a word.

    >>> bytes(repeated_word(b"01234567", address=6, num_bytes=4))
    b'6701'
    """
    phase = address % WORD_BYTES
    count = -(-(phase + num_bytes) // WORD_BYTES)
    return np.frombuffer(word * count, np.uint8)[phase : phase + num_bytes]


class Fills:
    """Ranges of chunks, each filled with one word; all other chunks are zero.

    >>> fills = Fills()
    >>> fills.set(range(0, 100), b"abcdefgh")
    >>> fills.set(range(10, 20), bytes(8))
    >>> fills.word_at(9), fills.word_at(15), fills.word_at(20) == fills.word_at(9)
    (b'abcdefgh', b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00', True)
    """

    __slots__ = ("_ends", "_starts", "_words")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._words: list[bytes] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def word_at(self, chunk: int) -> bytes:
        """Return the word that a chunk is filled with."""
        place = bisect_right(self._starts, chunk) - 1
        if place >= 0 and chunk < self._ends[place]:
            return self._words[place]
        return ZERO_WORD

    def overlaps(self, chunks: range) -> bool:
        """Return whether some of the chunks are filled with a word that is not zero."""
        place = bisect_left(self._ends, chunks.start + 1)
        return place < len(self._starts) and self._starts[place] < chunks.stop

    def set(self, chunks: range, word: bytes) -> None:
        """Fill chunks, whatever was there before."""
        first = bisect_left(self._ends, chunks.start + 1)
        last = bisect_left(self._starts, chunks.stop)
        new: list[tuple[int, int, bytes]] = []
        for place in range(first, last):
            start, end, before = self._starts[place], self._ends[place], self._words[place]
            if start < chunks.start:
                new.append((start, chunks.start, before))
            if end > chunks.stop:
                new.append((chunks.stop, end, before))
        if word != ZERO_WORD and chunks:
            new.append((chunks.start, chunks.stop, word))
        new.sort()
        self._starts[first:last] = [start for start, _, _ in new]
        self._ends[first:last] = [end for _, end, _ in new]
        self._words[first:last] = [each for _, _, each in new]


class Arena:
    """Neighbouring bytes of a store, in chunks; some chunks may be a word that is not written out.

    ``flags`` is shared with compiled code: byte 0 says whether there are such chunks, byte 1 + i
    whether chunk i is one of them.
    """

    __slots__ = ("_map", "chunk_bytes", "data", "flags")

    def __init__(self, num_bytes: int, chunk_bytes: int) -> None:
        # the system makes pages as they are touched; NumPy would ask for large ones
        self._map = mmap.mmap(-1, num_bytes)
        # a memoryview: NumPy looks at it twice as fast as at an array
        self.data = memoryview(self._map)
        self.chunk_bytes = chunk_bytes
        self.flags = bytearray(1 + num_bytes // chunk_bytes)

    @property
    def has_filled(self) -> bool:
        """Whether some chunk is a word that is not written out."""
        return self.flags[0] != 0

    def is_filled(self, chunk: int) -> bool:
        return self.flags[1 + chunk] != 0

    def note_filled(self, chunks: range, is_filled: bool) -> None:
        self.flags[1 + chunks.start : 1 + chunks.stop] = bytes([is_filled]) * len(chunks)
        self.flags[0] = 1 in self.flags[1:]

    def clear(self, chunks: range) -> None:
        """Make chunks zero, and give their memory back to the system where that can be."""
        start, num_bytes = chunks.start * self.chunk_bytes, len(chunks) * self.chunk_bytes
        if self.chunk_bytes % mmap.PAGESIZE == 0:
            with suppress(AttributeError, OSError):  # not every system can do it
                self._map.madvise(mmap.MADV_REMOVE, start, num_bytes)
                return
        np.frombuffer(self.data, BYTE, num_bytes, start)[...] = 0


class Piece(NamedTuple):
    """Segments, or a part of one, that lie in one unit of equal units: an arena or a chunk."""

    unit: int
    inside: int  # where the first of them begins in the unit
    shape: tuple[int, int]
    part: tuple[slice, slice]  # which rows and columns of all segments they are

    def of(self, data: memoryview, stride_bytes: int, skip_bytes: int = 0) -> Bytes:
        """Return their bytes in the data of the unit, to be read or written."""
        inside = skip_bytes + self.inside
        return np.ndarray(self.shape, BYTE, data, inside, (stride_bytes, 1))


def pieces_of(
    address: int, count: int, width: int, stride_bytes: int, unit_bytes: int
) -> Iterator[Piece]:
    """Yield as many segments at a time as one unit has; one that crosses units in parts."""
    row = 0
    while row < count and width:
        start = address + row * stride_bytes
        number, inside = divmod(start, unit_bytes)
        if inside + width > unit_bytes:
            yield from _parts(start, width, row, unit_bytes)
            row += 1
            continue
        fitting = count - row
        if stride_bytes > 0:
            fitting = min(fitting, (unit_bytes - inside - width) // stride_bytes + 1)
        elif stride_bytes < 0:
            fitting = min(fitting, inside // -stride_bytes + 1)
        part = (slice(row, row + fitting), slice(0, width))
        yield Piece(number, inside, (fitting, width), part)
        row += fitting


def _parts(start: int, width: int, row: int, unit_bytes: int) -> Iterator[Piece]:
    done = 0
    while done < width:
        number, inside = divmod(start + done, unit_bytes)
        size = min(width - done, unit_bytes - inside)
        yield Piece(number, inside, (1, size), (slice(row, row + 1), slice(done, done + size)))
        done += size
