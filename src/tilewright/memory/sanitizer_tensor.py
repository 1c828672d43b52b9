"""Tensors as the sanitizer sees them: which bytes are whose, and which element a byte is of."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.machine.coords import PeCoord
from tilewright.memory.place import MemoryKind, MemoryPlace
from tilewright.memory.shadow import Segments

__all__ = ("Region", "TensorBook", "TensorPart", "WatchedTensor")

TAG_SHIFT = 40  # virtual addresses are far below
TAG_LIMIT = 1 << 21  # halves of bytes have one bit more, and all of it is an int64
KEPT_DEAD = 4096


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring bytes of a tensor in a memory of the PE that has them."""

    home: PeCoord
    offset: int  # in the memory
    address: int  # virtual
    num_bytes: int
    kind: MemoryKind = MemoryKind.HBM

    @property
    def place(self) -> MemoryPlace:
        return MemoryPlace.of(self.kind, self.home)

    @property
    def end(self) -> int:
        return self.address + self.num_bytes


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A box of elements that lie packed, row by row, from a virtual address on."""

    address: int
    low: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def num_elements(self) -> int:
        return prod(self.shape)

    def index_of(self, element: int) -> tuple[int, ...]:
        """Of an element by its place in the box."""
        index = []
        for extent in reversed(self.shape):
            element, inside = divmod(element, extent)
            index.append(inside)
        return tuple(map(int.__add__, self.low, reversed(index)))


@dataclass(eq=False, slots=True)
class WatchedTensor:
    """One that lives, or lived until ``freed_ps``.

    Of a *global* tensor a PE may touch all bytes, of any other those of its own shards.
    """

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    item_bits: int
    parts: Sequence[TensorPart]  # by address
    regions: Sequence[Region]
    is_global: bool
    allocated_ps: int
    freed_ps: int | None = None
    low: int = field(init=False)  # its first virtual byte
    high: int = field(init=False)  # behind its last one
    _views: dict[PeCoord | None, list[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.low = min((region.address for region in self.regions), default=0)
        self.high = max((region.end for region in self.regions), default=0)

    def view(self, pe: PeCoord | None) -> list[tuple[int, int]]:
        """The virtual ranges that a PE may touch, in order."""
        key = None if self.is_global else pe
        if key not in self._views:
            self._views[key] = _merged(
                (region.address, region.end)
                for region in self.regions
                if key in (None, region.home)
            )
        return self._views[key]

    def outside(self, pe: PeCoord | None, span: Segments) -> tuple[int, int] | None:
        """Of the bytes of a span that a PE may not touch: the first, and how many there are."""
        view = self.view(pe)
        for low, high in view:
            if low <= span.address and span.end <= high:
                return None
        found: list[tuple[int, int]] = []
        for place in range(span.num_segments):
            start = span.address + place * span.stride_bytes
            found += _missing(view, start, start + span.num_bytes)
        return (found[0][0], sum(high - low for low, high in found)) if found else None

    def has(self, address: int) -> bool:
        """Whether a virtual byte is of any element, whoever has it."""
        return any(region.address <= address < region.end for region in self.regions)

    def has_home(self, pe: PeCoord) -> bool:
        """Whether a PE has some of its bytes."""
        return any(region.home == pe for region in self.regions)

    def homes_of(self, address: int) -> list[PeCoord]:
        return [each.home for each in self.regions if each.address <= address < each.end]

    def element_at(self, address: int) -> str:
        """What a virtual byte is of, as a kernel's author writes it."""
        if not self.has(address):
            distance = address - self.low
            return f"{self.name} {'-' if distance < 0 else '+'} {abs(distance)} bytes"
        place = bisect_right(self.parts, address, key=lambda part: part.address) - 1
        part = self.parts[place]
        index = part.index_of((address - part.address) * 8 // self.item_bits)
        return f"{self.name}[{', '.join(map(str, index))}]"

    def __str__(self) -> str:
        return f"{self.name} ({self.dtype}{list(self.shape)})"


class TensorBook:
    """All tensors there are, and the last that there were."""

    def __init__(self) -> None:
        self._live: dict[int, WatchedTensor] = {}  # by number
        self._lows: list[int] = []  # where they begin, in order
        self._in_order: list[WatchedTensor] = []
        self._dead: dict[int, WatchedTensor] = {}
        self._num_tensors = 0

    def __len__(self) -> int:
        """How many there ever were."""
        return self._num_tensors

    def __iter__(self) -> Iterator[WatchedTensor]:
        """Those that live, by address."""
        return iter(self._in_order)

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str,
        item_bits: int,
        *,
        parts: Sequence[TensorPart],
        regions: Iterable[Region],
        is_global: bool,
        at_ps: int,
    ) -> WatchedTensor:
        self._num_tensors += 1
        tensor = WatchedTensor(
            self._num_tensors,
            name,
            shape,
            dtype,
            item_bits,
            parts,
            tuple(regions),
            is_global,
            at_ps,
        )
        place = bisect_right(self._lows, tensor.low)
        self._lows.insert(place, tensor.low)
        self._in_order.insert(place, tensor)
        self._live[tensor.number] = tensor
        return tensor

    def remove(self, tensor: WatchedTensor, at_ps: int) -> None:
        place = self._in_order.index(tensor)
        del self._in_order[place], self._lows[place], self._live[tensor.number]
        tensor.freed_ps = at_ps
        self._dead[tensor.number] = tensor
        if len(self._dead) > KEPT_DEAD:
            del self._dead[next(iter(self._dead))]

    def at(self, address: int) -> WatchedTensor | None:
        """The living tensor that a virtual byte is of, else the last one that it was of."""
        place = bisect_right(self._lows, address) - 1
        if place >= 0 and address < self._in_order[place].high:
            return self._in_order[place]
        for tensor in reversed(self._dead.values()):
            if tensor.low <= address < tensor.high:
                return tensor
        return None

    def before(self, address: int) -> WatchedTensor | None:
        """The last living tensor that begins at or before a virtual byte."""
        place = bisect_right(self._lows, address) - 1
        return self._in_order[place] if place >= 0 else None

    def in_memory(self, place: MemoryPlace, offset: int) -> tuple[WatchedTensor, int] | None:
        """The living tensor that a byte of a memory is of, and the byte's virtual address."""
        for tensor in self._in_order:
            for region in tensor.regions:
                if region.place == place and 0 <= offset - region.offset < region.num_bytes:
                    return tensor, region.address + offset - region.offset
        return None

    # -- tags ------------------------------------------------------------------------------------

    def tagged(self, address: int) -> int:
        """A virtual address that says which tensor it came from, whatever is added to it."""
        if address >> TAG_SHIFT:
            return address
        tensor = self.at(address)
        if tensor is None or tensor.number >= TAG_LIMIT:
            return address
        return address + (tensor.number << TAG_SHIFT)

    def untagged(self, address: int, scale: int = 1) -> tuple[int, WatchedTensor | None]:
        """The address itself, and its tensor; ``scale`` is 2 for addresses of halves."""
        unit = scale << TAG_SHIFT
        number = (address + unit // 2) // unit  # what was added may be negative
        tensors: Mapping[int, WatchedTensor] = self._live if number in self._live else self._dead
        return address - number * unit, tensors.get(number)


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, and neighbours as one.

    >>> _merged([(8, 12), (0, 4), (4, 6), (0, 4)])
    [(0, 6), (8, 12)]
    """
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _missing(ranges: list[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """What ranges in order leave out.

    >>> list(_missing([(0, 4), (6, 8)], 2, 10))
    [(4, 6), (8, 10)]
    """
    for low, high in ranges:
        if start < low and start < end:
            yield start, min(low, end)
        start = max(start, high)
    if start < end:
        yield start, end
