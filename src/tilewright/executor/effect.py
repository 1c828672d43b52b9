"""What happens to memory at simulated times: bytes are captured, committed, exchanged."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.engine.spec import EngineKind
from tilewright.errors import TilewrightError
from tilewright.executor.access.layout import Layout
from tilewright.executor.access.packed import PackedLayout
from tilewright.executor.access.translate import Piece
from tilewright.executor.compiled import compiled_front
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


def build_effect_log(kind: EngineKind, memories: Sequence[Any]) -> EffectLog:
    """For programs on an engine; compiled code applies its captures and commits itself.

    Each of the memories has a ``storage``; they may become more.
    """
    front = compiled_front(kind)
    return EffectLog() if front is None else front.EffectLog(memories)


class Capture:
    """A load reads its bytes, all at once, when the memory has served the last of them."""

    __slots__ = ("dtype", "fill", "layout", "node", "pieces", "storages")

    def __init__(
        self,
        node: Node,
        storages: Sequence[Storage],
        pieces: Sequence[Piece],
        layout: Layout | PackedLayout,
        dtype: DType,
        fill: Any,
    ) -> None:
        self.node = node
        self.storages = storages
        self.pieces = pieces
        self.layout = layout
        self.dtype = dtype
        self.fill = fill  # of the places outside the box

    def apply(self) -> bool:
        layout, storage = self.layout, self.dtype.storage
        data = read_pieces(self.storages, self.pieces, layout.num_segments, layout.segment_bytes)
        inside = layout.gather(data, storage)
        box = layout.box
        if box.is_whole:
            self.node.settle(inside)
            return False
        block = np.full(box.shape, self.fill, storage)
        block[tuple(map(slice, box.low, box.high))] = inside
        self.node.settle(block)
        return False


class Commit:
    """A store's bytes become visible; its value is computed by then."""

    __slots__ = ("layout", "node", "pieces", "storages")

    def __init__(
        self, node: Node, storages: Sequence[Storage], pieces: Sequence[Piece], layout: Layout
    ) -> None:
        self.node = node
        self.storages = storages
        self.pieces = pieces
        self.layout = layout

    def apply(self) -> None:
        box = self.layout.box
        value = evaluate(self.node)
        if value.shape != box.shape:
            value = np.broadcast_to(value, box.shape)
        if not box.is_whole:
            value = value[tuple(map(slice, box.low, box.high))]
        write_pieces(self.storages, self.pieces, self.layout.scatter(value))


class PackedCommit:
    """As a commit, of elements of which a byte holds two: the other halves of bytes stay."""

    __slots__ = ("layout", "node", "pieces", "storages")

    def __init__(
        self,
        node: Node,
        storages: Sequence[Storage],
        pieces: Sequence[Piece],
        layout: PackedLayout,
    ) -> None:
        self.node = node
        self.storages = storages
        self.pieces = pieces
        self.layout = layout

    def apply(self) -> None:
        layout = self.layout
        value = np.broadcast_to(evaluate(self.node), layout.box.shape)
        inside = value[tuple(map(slice, layout.box.low, layout.box.high))]
        data = read_pieces(self.storages, self.pieces, layout.num_segments, layout.segment_bytes)
        write_pieces(self.storages, self.pieces, layout.merge(data, inside))


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
    storages: Sequence[Storage],
    pieces: Sequence[Piece],
    data: np.ndarray[Any, np.dtype[np.uint8]],
) -> None:
    """The reverse."""
    for piece in pieces:
        first, skip = piece.first_segment, piece.skip_bytes
        part = data[first : first + piece.num_segments, skip : skip + piece.num_bytes]
        storages[piece.memory].write_segments(part, piece.address, piece.stride_bytes)
