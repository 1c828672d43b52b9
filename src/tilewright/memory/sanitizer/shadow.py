"""What is known about every byte of one memory: was it written, and who accessed it last.

State lies in arrays of the memory's own shape, made where an access goes; an access of many
segments is one look at a strided view.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from tilewright.memory.address import Segments
from tilewright.memory.store_arena import WORD_BYTES, Fills, Piece, pieces_of

ARENA_SHIFT = 21  # 2 MiB: the rows of a tile lie in a few of them
ARENA_BYTES = 1 << ARENA_SHIFT
WRITTEN, UNWRITTEN = b"\x01" * WORD_BYTES, bytes(WORD_BYTES)

Numbers = np.ndarray[Any, np.dtype[np.int32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Window(NamedTuple):
    """Segments, or parts of some, in one arena: segments are rows, bytes of them columns."""

    address: int
    stride_bytes: int
    arena: "_Arena"
    inside: int  # address in the arena
    shape: tuple[int, int]

    @property
    def written(self) -> Flags:
        return self._view(self.arena.written)

    @property
    def writers(self) -> Numbers:
        """Numbers of the last writes; 0 is nobody."""
        return self._view(self.arena.numbers["writers"])

    @property
    def readers(self) -> Numbers:
        """Numbers of the reads since then; 0 is nobody."""
        return self._view(self.arena.numbers["readers"])

    def forget_accesses(self) -> None:
        for array in self.arena.numbers.values():
            self._view(array)[...] = 0

    def address_of(self, place: int) -> int:
        """Of a byte by its place, counted row by row."""
        row, column = divmod(place, self.shape[1])
        return self.address + row * self.stride_bytes + column

    def _view(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rows, columns = self.shape
        item = array.itemsize
        return np.ndarray(
            (rows, columns),
            array.dtype,
            array.data,
            self.inside * item,
            (self.stride_bytes * item, item),
        )


class _Arena:
    """One array for each question, made when it is first asked."""

    __slots__ = ("numbers", "written")

    def __init__(self) -> None:
        self.written: Flags = _zeros(np.bool_)
        self.numbers: defaultdict[str, Numbers] = defaultdict(partial(_zeros, np.int32))


def _zeros(dtype: type[Any]) -> np.ndarray[Any, Any]:
    """From the system, which hands out pages when they are touched; NumPy may write them all."""
    return np.frombuffer(mmap(-1, ARENA_BYTES * np.dtype(dtype).itemsize), dtype)


class Shadow:
    """Of one memory.

    >>> shadow = Shadow()
    >>> shadow.mark_written(Segments(100, 3, 4, 16))
    >>> shadow.first_unwritten(Segments(116, 1, 4, 4)) is None
    True
    >>> shadow.first_unwritten(Segments(116, 1, 8, 8))
    (120, 4)
    """

    def __init__(self) -> None:
        self._arenas: dict[int, _Arena] = {}
        self._whole = Fills()  # by number, arenas that are not made and all of which was written

    def windows(self, segments: Segments) -> Iterator[Window]:
        """All of them, in order."""
        for piece in _pieces(segments):
            yield self._window(piece, segments.stride_bytes)

    def mark_written(self, segments: Segments) -> None:
        whole = _whole_arenas(segments)
        for number in self._made(whole):
            self._arenas[number].written[...] = True
        if whole:
            self._whole.set(whole, WRITTEN)
        for piece in _pieces(segments):
            if piece.unit not in whole:
                self._window(piece, segments.stride_bytes).written[...] = True

    def first_unwritten(self, segments: Segments) -> tuple[int, int] | None:
        """The address of the first byte that nobody has written, and how many of them there are."""
        found: int | None = None
        missing = 0
        for piece in _pieces(segments):
            if piece.unit not in self._arenas and self._whole.word_at(piece.unit) == WRITTEN:
                continue
            window = self._window(piece, segments.stride_bytes)
            written = window.written
            if written.all():
                continue
            if found is None:
                found = window.address_of(int(written.argmin()))
            missing += written.size - int(np.count_nonzero(written))
        return None if found is None else (found, missing)

    def forget(self, address: int, num_bytes: int) -> None:
        """The bytes are somebody else's from now on: never written, never accessed."""
        segments = Segments(address, 1, num_bytes, num_bytes)
        whole = _whole_arenas(segments)
        for number in self._made(whole):
            del self._arenas[number]
        self._whole.set(whole, UNWRITTEN)
        for edge in {address >> ARENA_SHIFT, address + num_bytes - 1 >> ARENA_SHIFT}:
            if edge in whole or not (edge in self._arenas or self._whole.word_at(edge) == WRITTEN):
                continue
            start = max(address, edge << ARENA_SHIFT)
            size = min(address + num_bytes, edge + 1 << ARENA_SHIFT) - start
            (piece,) = _pieces(Segments(start, 1, size, size))
            window = self._window(piece, size)
            window.written[...] = False
            window.forget_accesses()

    def forget_accesses(self) -> None:
        """What was accessed until now comes before all that follows."""
        for arena in self._arenas.values():
            arena.numbers.clear()

    def _made(self, numbers: range) -> list[int]:
        """Those of the arenas that there are."""
        if len(numbers) < len(self._arenas):
            return [number for number in numbers if number in self._arenas]
        return [number for number in self._arenas if number in numbers]

    def _window(self, piece: Piece, stride_bytes: int) -> Window:
        arena = self._arenas.get(piece.unit)
        if arena is None:
            arena = self._arenas[piece.unit] = _Arena()
            if self._whole.word_at(piece.unit) == WRITTEN:
                arena.written[...] = True
        address = piece.unit * ARENA_BYTES + piece.inside
        return Window(address, stride_bytes, arena, piece.inside, piece.shape)


def _pieces(segments: Segments) -> Iterator[Piece]:
    """Yield segments, or parts of one, that lie in one arena, in order."""
    return pieces_of(*segments, ARENA_BYTES)


def _whole_arenas(segments: Segments) -> range:
    """The arenas that one long segment covers from end to end."""
    address, count, size, _ = segments
    if count > 1:
        return range(0)
    return range(-(-address // ARENA_BYTES), max(0, (address + size) // ARENA_BYTES))
