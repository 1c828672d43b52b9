"""The bytes of one memory: any of them can be read and written in any grouping, at any time."""

from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.errors import InternalError, MemoryAccessError

__all__ = ("ByteStore",)

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

ARENA_SHIFT = 24  # 16 MiB: a tile of a large matrix mostly lies in one arena
ARENA_BYTES = 1 << ARENA_SHIFT
BYTE = np.dtype(np.uint8)


class ByteStore:
    """A memory of ``capacity_bytes`` whose bytes are zero until they are written.

    Only what was written takes space here. A *segment* is a number of neighbouring bytes;
    the two calls for segments move many of them at equal distances, which may be negative, zero or
    less than a segment. Of segments that overlap in a write, the last one wins.

    >>> store = ByteStore("sip0.cube3.sram", capacity_bytes=2**25)
    >>> store.write(6, b"tilewright")
    >>> out = np.empty((3, 2), np.uint8)
    >>> store.read_segments(out, address=6, stride_bytes=4)
    >>> [bytes(segment) for segment in out]
    [b'ti', b'wr', b'ht']
    """

    __slots__ = ("_arenas", "_written", "capacity_bytes", "name")

    arena_shift = ARENA_SHIFT

    def __init__(self, name: str, capacity_bytes: int, *, tracks_writes: bool = False) -> None:
        self.name = name
        self.capacity_bytes = capacity_bytes
        # memoryviews: NumPy looks at them twice as fast as at arrays
        self._arenas: dict[int, memoryview] = {}
        self._written: dict[int, memoryview] | None = {} if tracks_writes else None

    def __repr__(self) -> str:
        return f"<ByteStore {self.name!r}, {self.arena_bytes} of {self.capacity_bytes} bytes>"

    @property
    def is_plain(self) -> bool:
        """Whether its bytes may be reached through arenas, without a word to the store."""
        return self._written is None

    def arena(self, number: int, makes: bool) -> memoryview | None:
        """All bytes from number << arena_shift on; None if none was written and it makes none."""
        arena = self._arenas.get(number)
        if arena is None and makes:
            arena = self._arenas[number] = _new_arena()
        return arena

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arenas that have been made, since some in them were written."""
        return len(self._arenas) * ARENA_BYTES

    def read(self, address: int, num_bytes: int) -> Bytes:
        """A copy of neighbouring bytes."""
        if num_bytes < 0:
            raise self._outside(address, num_bytes)
        out = np.empty(num_bytes, BYTE)
        self.read_segments(out.reshape(1, -1), address, num_bytes)
        return out

    def write(self, address: int, data: "bytes | bytearray | memoryview | Bytes") -> None:
        """Neighbouring bytes, all that ``data`` has."""
        flat = np.frombuffer(data, BYTE)
        self.write_segments(flat.reshape(1, -1), address, flat.size)

    def read_segments(self, out: Bytes, address: int, stride_bytes: int) -> None:
        """Fill ``out`` [segments, bytes of each]; segment i is at address + i * stride_bytes."""
        count, width = out.shape
        if not count:
            return
        last = address + (count - 1) * stride_bytes
        low, high = (address, last) if stride_bytes >= 0 else (last, address)
        if low < 0 or high + width > self.capacity_bytes or out.dtype is not BYTE:
            self._check(out, low, high + width)
        number = low >> ARENA_SHIFT
        if number != high + width - 1 >> ARENA_SHIFT:
            self._read_pieces(out, address, stride_bytes)
            return
        arena = self._arenas.get(number)
        if arena is None:
            out.fill(0)
        else:
            inside = address - (number << ARENA_SHIFT)
            out[...] = np.ndarray((count, width), BYTE, arena, inside, (stride_bytes, 1))

    def write_segments(
        self, data: Bytes, address: int, stride_bytes: int, mask: Mask | None = None
    ) -> None:
        """The reverse. With a ``mask`` of the shape of ``data``, only bytes where it is true."""
        count, width = data.shape
        if not count:
            return
        last = address + (count - 1) * stride_bytes
        low, high = (address, last) if stride_bytes >= 0 else (last, address)
        if low < 0 or high + width > self.capacity_bytes or data.dtype is not BYTE:
            self._check(data, low, high + width)
        if -width < stride_bytes < width and count > 1:
            self._write_one_by_one(data, address, stride_bytes, mask)
            return
        number = low >> ARENA_SHIFT
        is_plain = mask is None and self._written is None
        if number != high + width - 1 >> ARENA_SHIFT or not is_plain:
            self._write_pieces(data, address, stride_bytes, mask)
            return
        arena = self._arenas.get(number)
        if arena is None:
            arena = self._arenas[number] = _new_arena()
        inside = address - (number << ARENA_SHIFT)
        np.ndarray((count, width), BYTE, arena, inside, (stride_bytes, 1))[...] = data

    def is_written(self, address: int, num_bytes: int) -> bool:
        """Whether each of these bytes was ever written; only a store that tracks writes knows."""
        if self._written is None:
            fix = "build the store with tracks_writes=True"
            raise InternalError(self.name, "no track of writes", "one", fix)
        if num_bytes < 0 or address < 0 or address + num_bytes > self.capacity_bytes:
            raise self._outside(address, num_bytes)
        for piece in _pieces(address, 1, num_bytes, num_bytes):
            written = self._written.get(piece.arena)
            if written is None or not piece.of(written, num_bytes).all():
                return False
        return True

    def _read_pieces(self, out: Bytes, address: int, stride_bytes: int) -> None:
        count, width = out.shape
        for piece in _pieces(address, count, width, stride_bytes):
            arena = self._arenas.get(piece.arena)
            out[piece.part] = 0 if arena is None else piece.of(arena, stride_bytes)

    def _write_pieces(
        self, data: Bytes, address: int, stride_bytes: int, mask: Mask | None
    ) -> None:
        count, width = data.shape
        for piece in _pieces(address, count, width, stride_bytes):
            where = True if mask is None else mask[piece.part]
            if piece.arena not in self._arenas:
                self._arenas[piece.arena] = _new_arena()
            there = piece.of(self._arenas[piece.arena], stride_bytes)
            np.copyto(there, data[piece.part], where=where)
            if self._written is not None:
                if piece.arena not in self._written:
                    self._written[piece.arena] = _new_arena()
                np.copyto(piece.of(self._written[piece.arena], stride_bytes), 1, where=where)

    def _write_one_by_one(
        self, data: Bytes, address: int, stride_bytes: int, mask: Mask | None
    ) -> None:
        """Segments that overlap: NumPy would write them in an order of its own."""
        width = data.shape[1]
        for row in range(len(data)):
            rows = slice(row, row + 1)
            part = None if mask is None else mask[rows]
            self.write_segments(data[rows], address + row * stride_bytes, width, part)

    def _check(self, data: Bytes, low: int, high: int) -> None:
        if data.dtype != BYTE:
            fix = "pass array.view(np.uint8)"
            raise InternalError(self.name, f"an array of {data.dtype}", "bytes (np.uint8)", fix)
        if low < 0 or high > self.capacity_bytes:
            raise self._outside(low, high - low)

    def _outside(self, address: int, num_bytes: int) -> MemoryAccessError:
        found = f"an access to {num_bytes} bytes at {address:#x}"
        expected = f"bytes of its {self.capacity_bytes}"
        fix = "correct the address or the size"
        return MemoryAccessError(
            self.name, found, expected, fix, address, num_bytes, self.capacity_bytes
        )


class _Piece(NamedTuple):
    """Segments, or a part of one, that lie in one arena."""

    arena: int
    inside: int  # where the first of them begins in the arena
    shape: tuple[int, int]
    part: tuple[slice, slice]  # which rows and columns of all segments they are

    def of(self, arena: memoryview, stride_bytes: int) -> Bytes:
        """Their bytes in an arena, to be read or written."""
        return np.ndarray(self.shape, BYTE, arena, self.inside, (stride_bytes, 1))


def _pieces(address: int, count: int, width: int, stride_bytes: int) -> Iterator[_Piece]:
    """As many segments at a time as one arena has; one that crosses arenas in parts."""
    row = 0
    while row < count and width:
        start = address + row * stride_bytes
        number, inside = divmod(start, ARENA_BYTES)
        if inside + width > ARENA_BYTES:
            yield from _parts(start, width, row)
            row += 1
            continue
        fitting = count - row
        if stride_bytes > 0:
            fitting = min(fitting, (ARENA_BYTES - inside - width) // stride_bytes + 1)
        elif stride_bytes < 0:
            fitting = min(fitting, inside // -stride_bytes + 1)
        part = (slice(row, row + fitting), slice(0, width))
        yield _Piece(number, inside, (fitting, width), part)
        row += fitting


def _parts(start: int, width: int, row: int) -> Iterator[_Piece]:
    done = 0
    while done < width:
        number, inside = divmod(start + done, ARENA_BYTES)
        size = min(width - done, ARENA_BYTES - inside)
        yield _Piece(number, inside, (1, size), (slice(row, row + 1), slice(done, done + size)))
        done += size


def _new_arena() -> memoryview:
    """Zeros, whose pages the system makes as they are touched; NumPy would ask for large ones."""
    return memoryview(mmap(-1, ARENA_BYTES))
