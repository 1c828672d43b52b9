"""Bytes that are the same word again and again: kept as ranges, not byte by byte."""

from bisect import bisect_left, bisect_right

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8  # a multiple of every element's size
ZERO_WORD = bytes(WORD_BYTES)

Bytes = npt.NDArray[np.uint8]


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
