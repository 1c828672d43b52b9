"""What happens to memory at simulated times: bytes are captured, committed, exchanged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilewright.engine.core import NO_EFFECT
from tilewright.errors import TilewrightError
from tilewright.executor.address import Piece
from tilewright.executor.layout import Layout, PackedLayout
from tilewright.language.dtype import DType
from tilewright.language.front import Node, evaluate
from tilewright.language.source import add_place


class Storage(Protocol):
    """The bytes of one memory."""

    def read_segments(self, out: Any, address: int, stride_bytes: int) -> None: ...
    def write_segments(self, data: Any, address: int, stride_bytes: int) -> None: ...
    def fill(self, address: int, num_bytes: int, element: bytes) -> None: ...


class Effect(Protocol):
    """Something that a command does to memory when its last byte has been served."""

    def apply(self) -> bool | None:
        """Do it; False: memories and page tables are as they were."""


class EffectLog:
    """Numbers effects for the engine, and applies them when it reports them, in its order."""

    def __init__(self) -> None:
        self._effects: dict[int, list[Any]] = {}  # those that are not applied, by number
        self._num_effects = 0
        self.num_changes = 0  # effects that have changed something

    def add(self, effect: Effect, num_parts: int, owner: object = "a kernel") -> int:
        """The number that each of the tasks of a command reports when it has been served.

        ``owner`` is the program that an error in the effect names.
        """
        number = self._num_effects
        self._num_effects = number + 1
        self._effects[number] = [num_parts, effect, owner]
        return number

    def apply(self, served: Sequence[tuple[int, int]]) -> None:
        """For a hub: all that was served since the last time, in event order."""
        effects = self._effects
        for at_ps, number in served:
            entry = effects[number]
            entry[0] -= 1  # reported once a part
            if not entry[0]:
                del effects[number]
                try:
                    self.num_changes += entry[1].apply() is not False
                except TilewrightError as error:
                    add_place(error, f"{entry[2]}, at {at_ps} ps")
                    raise


Hear = Callable[[int], None]
"""Is told the time."""


class _Nothing:
    """The effect of an access that only takes time."""

    def apply(self) -> bool:
        """Leave memory as it is."""
        return False


NOTHING = _Nothing()


class WatchedEffectLog(EffectLog):
    """Applies effects as ever, and then tells who watches them, in the order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.at_ps = 0  # of the event that is being applied
        self._watched: dict[int, tuple[int, Hear]] = {}  # by effect: parts that are left, and who

    def watch(self, effect: int, num_parts: int, hear: Hear, owner: object) -> int:
        """Hear when all parts of an effect were served; an access without one gets one."""
        number = self.add(NOTHING, num_parts, owner) if effect == NO_EFFECT else effect
        self._watched[number] = num_parts, hear
        return number

    def apply(self, served: Sequence[tuple[int, int]]) -> None:
        for at_ps, number in served:
            self.at_ps = at_ps
            super().apply(((at_ps, number),))
            watched = self._watched.get(number)
            if watched is None:
                continue
            num_parts, hear = watched
            if num_parts > 1:
                self._watched[number] = num_parts - 1, hear
            else:
                del self._watched[number]
                hear(at_ps)


@dataclass(eq=False, slots=True)
class Capture:
    """A load reads its bytes, all at once, when the memory has served the last of them."""

    node: Node
    storages: Sequence[Storage]
    pieces: Sequence[Piece]
    layout: Layout | PackedLayout
    dtype: DType
    fill: Any  # of the places outside the box

    def apply(self) -> bool:
        layout, box, storage = self.layout, self.layout.box, self.dtype.storage
        data = read_pieces(self.storages, self.pieces, layout.num_segments, layout.segment_bytes)
        block = inside = layout.gather(data, storage)
        if not box.is_whole:
            block = np.full(box.shape, self.fill, storage)
            block[box.slices] = inside
        self.node.settle(block)
        return False


@dataclass(eq=False, slots=True)
class Commit:
    """A store's bytes become visible; its value is computed by then.

    Of elements of which a byte holds two, the other halves of bytes stay.
    """

    node: Node
    storages: Sequence[Storage]
    pieces: Sequence[Piece]
    layout: Layout | PackedLayout

    def apply(self) -> None:
        layout, box = self.layout, self.layout.box
        value = evaluate(self.node)
        if value.shape != box.shape:
            value = np.broadcast_to(value, box.shape)
        if not box.is_whole:
            value = value[box.slices]
        if isinstance(layout, Layout):
            data = layout.scatter(value)
        else:
            before = read_pieces(
                self.storages, self.pieces, layout.num_segments, layout.segment_bytes
            )
            data = layout.merge(before, value)
        write_pieces(self.storages, self.pieces, data)


def read_pieces(
    storages: Sequence[Storage], pieces: Sequence[Piece], num_segments: int, segment_bytes: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Segments of an access from the memories that hold them."""
    data = np.empty((num_segments, segment_bytes), np.uint8)
    for piece in pieces:
        first, skip = piece.first_segment, piece.skip_bytes
        part = data[first : first + piece.num_segments, skip : skip + piece.num_bytes]
        storages[piece.memory].read_segments(part, piece.address, piece.stride_bytes)
    return data


def write_pieces(
    storages: Sequence[Storage], pieces: Sequence[Piece], data: np.ndarray[Any, np.dtype[np.uint8]]
) -> None:
    """The reverse."""
    for piece in pieces:
        first, skip = piece.first_segment, piece.skip_bytes
        part = data[first : first + piece.num_segments, skip : skip + piece.num_bytes]
        storages[piece.memory].write_segments(part, piece.address, piece.stride_bytes)
