"""The bytes of one memory: any of them can be read and written in any grouping, at any time."""

import numpy as np
import numpy.typing as npt

from tilewright.errors import InternalError, MemoryAccessError
from tilewright.memory.store_arena import Arena, Fills, pieces_of, repeated_word, word_of

Bytes = npt.NDArray[np.uint8]

ARENA_SHIFT = 24  # 16 MiB: a tile of a large matrix mostly lies in one arena
ARENA_BYTES = 1 << ARENA_SHIFT
CHUNK_BYTES = 1 << 16  # what a fill keeps as a word
BYTE = np.dtype(np.uint8)


class ByteStore:
    """A memory of ``capacity_bytes`` whose bytes are zero until they are written.

    Only what was written takes space here; a fill takes none, however long it is. A *segment* is a
    number of neighbouring bytes; the two calls for segments move many of them at equal distances,
    which may be negative, zero or less than a segment. Of segments that overlap in a write, the
    last one wins.

    >>> store = ByteStore("sip0.cube3.sram", capacity_bytes=2**25)
    >>> store.write(6, b"tilewright")
    >>> out = np.empty((3, 2), np.uint8)
    >>> store.read_segments(out, address=6, stride_bytes=4)
    >>> [bytes(segment) for segment in out]
    [b'ti', b'wr', b'ht']
    """

    __slots__ = ("_arenas", "_fills", "capacity_bytes", "name")

    arena_shift = ARENA_SHIFT
    is_plain = True  # its bytes may be reached through arenas, without a word to the store

    def __init__(self, name: str, capacity_bytes: int) -> None:
        self.name = name
        self.capacity_bytes = capacity_bytes
        self._arenas: dict[int, Arena] = {}
        self._fills = Fills()  # of chunks that no arena has, or that are flagged there

    def __repr__(self) -> str:
        return f"<ByteStore {self.name!r}, {self.arena_bytes} of {self.capacity_bytes} bytes>"

    @property
    def chunk_bytes(self) -> int:
        """The bytes of a chunk, of which ``flags_of`` tells whether it is a word."""
        return min(CHUNK_BYTES, ARENA_BYTES)

    def arena(self, number: int, makes: bool) -> memoryview | None:
        """All bytes from number << arena_shift on; None if all are zero and it makes none."""
        arena = self._arenas.get(number)
        if arena is None and (makes or self._fills.overlaps(self._chunks_of(number))):
            arena = self._new_arena(number)
        return None if arena is None else arena.data

    def flags_of(self, number: int) -> bytearray:
        """The flags of an arena that has been made: see ``Arena``."""
        return self._arenas[number].flags

    def word_at(self, address: int) -> bytes:
        """The word that a flagged chunk is filled with, by one of its bytes."""
        return self._fills.word_at(address // self.chunk_bytes)

    def write_out(self, address: int) -> None:
        """Put a flagged chunk, by one of its bytes, into its arena."""
        number, inside = divmod(address, ARENA_BYTES)
        size = self.chunk_bytes
        arena, chunk = self._arenas[number], inside // size
        word = self._fills.word_at(address // size)
        np.frombuffer(arena.data, BYTE, size, chunk * size)[...] = repeated_word(word, 0, size)
        arena.note_filled(range(chunk, chunk + 1), False)

    def _chunks_of(self, number: int) -> range:
        count = ARENA_BYTES // self.chunk_bytes
        return range(number * count, (number + 1) * count)

    def _new_arena(self, number: int) -> Arena:
        arena = self._arenas[number] = Arena(ARENA_BYTES, self.chunk_bytes)
        chunks = self._chunks_of(number)
        if self._fills.overlaps(chunks):
            for place, chunk in enumerate(chunks):
                arena.note_filled(range(place, place + 1), any(self._fills.word_at(chunk)))
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
        if arena is None and not self._fills:
            out.fill(0)
        elif arena is None or arena.has_filled:
            self._read_chunks(out, address, stride_bytes)
        else:
            inside = address - (number << ARENA_SHIFT)
            out[...] = np.ndarray((count, width), BYTE, arena.data, inside, (stride_bytes, 1))

    def write_segments(self, data: Bytes, address: int, stride_bytes: int) -> None:
        """The reverse."""
        count, width = data.shape
        if not count:
            return
        last = address + (count - 1) * stride_bytes
        low, high = (address, last) if stride_bytes >= 0 else (last, address)
        if low < 0 or high + width > self.capacity_bytes or data.dtype is not BYTE:
            self._check(data, low, high + width)
        if -width < stride_bytes < width and count > 1:
            # they overlap: NumPy would write them in an order of its own
            for row in range(count):
                self.write_segments(data[row : row + 1], address + row * stride_bytes, width)
            return
        number = low >> ARENA_SHIFT
        if number != high + width - 1 >> ARENA_SHIFT:
            self._write_pieces(data, address, stride_bytes)
            return
        arena = self._arenas.get(number) or self._new_arena(number)
        if arena.has_filled:
            self._write_out_all(address, count, width, stride_bytes)
        inside = address - (number << ARENA_SHIFT)
        np.ndarray((count, width), BYTE, arena.data, inside, (stride_bytes, 1))[...] = data

    def fill(self, address: int, num_bytes: int, element: bytes) -> None:
        """Write an element again and again, from an address on; the last one may be cut short."""
        if num_bytes < 0 or address < 0 or address + num_bytes > self.capacity_bytes:
            raise self._outside(address, num_bytes)
        word, size, end = word_of(element, address), self.chunk_bytes, address + num_bytes
        chunks = range(-(-address // size), end // size)
        if word is None or not chunks:
            self._fill_bytes(address, num_bytes, element)
            return
        self._fill_bytes(address, chunks.start * size - address, element)
        done = chunks.stop * size - address
        phase = done % len(element)
        self._fill_bytes(address + done, num_bytes - done, element[phase:] + element[:phase])
        self._fills.set(chunks, word)
        for number, arena in self._arenas.items():
            own = self._chunks_of(number)
            both = range(max(own.start, chunks.start), min(own.stop, chunks.stop))
            if both:
                inside = range(both.start - own.start, both.stop - own.start)
                arena.clear(inside)
                arena.note_filled(inside, any(word))

    def _fill_bytes(self, address: int, num_bytes: int, element: bytes) -> None:
        """Write out a fill, an arena at a time."""
        step = ARENA_BYTES // len(element) * len(element) or len(element)
        for done in range(0, num_bytes, step):
            size = min(step, num_bytes - done)
            data = np.frombuffer(element * (-(-size // len(element))), BYTE, size)
            self.write_segments(data.reshape(1, -1), address + done, size)

    def _read_pieces(self, out: Bytes, address: int, stride_bytes: int) -> None:
        count, width = out.shape
        for piece in pieces_of(address, count, width, stride_bytes, ARENA_BYTES):
            arena = self._arenas.get(piece.unit)
            if arena is not None and not arena.has_filled:
                out[piece.part] = piece.of(arena.data, stride_bytes)
            elif arena is None and not self._fills:
                out[piece.part] = 0
            else:
                start = piece.unit * ARENA_BYTES + piece.inside
                self._read_chunks(out[piece.part], start, stride_bytes)

    def _read_chunks(self, out: Bytes, address: int, stride_bytes: int) -> None:
        """Read segments of which some may be filled; each piece lies in one chunk."""
        count, width = out.shape
        size, per_arena = self.chunk_bytes, ARENA_BYTES // self.chunk_bytes
        for piece in pieces_of(address, count, width, stride_bytes, size):
            arena = self._arenas.get(piece.unit // per_arena)
            chunk = piece.unit % per_arena
            if arena is not None and not arena.is_filled(chunk):
                out[piece.part] = piece.of(arena.data, stride_bytes, chunk * size)
                continue
            rows, columns = piece.shape
            start = piece.inside + min(0, (rows - 1) * stride_bytes)
            reach = abs((rows - 1) * stride_bytes) + columns
            bytes_ = repeated_word(self._fills.word_at(piece.unit), start, reach)
            steps = (stride_bytes, 1)
            there = np.ndarray(piece.shape, BYTE, bytes_.tobytes(), piece.inside - start, steps)
            out[piece.part] = there

    def _write_out_all(self, address: int, count: int, width: int, stride_bytes: int) -> None:
        """Put the chunks that segments lie in into their arenas, which have been made."""
        size, per_arena = self.chunk_bytes, ARENA_BYTES // self.chunk_bytes
        for piece in pieces_of(address, count, width, stride_bytes, size):
            if self._arenas[piece.unit // per_arena].is_filled(piece.unit % per_arena):
                self.write_out(piece.unit * size)

    def _write_pieces(self, data: Bytes, address: int, stride_bytes: int) -> None:
        count, width = data.shape
        for piece in pieces_of(address, count, width, stride_bytes, ARENA_BYTES):
            arena = self._arenas.get(piece.unit) or self._new_arena(piece.unit)
            if arena.has_filled:
                start = piece.unit * ARENA_BYTES + piece.inside
                self._write_out_all(start, *piece.shape, stride_bytes)
            piece.of(arena.data, stride_bytes)[...] = data[piece.part]

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
