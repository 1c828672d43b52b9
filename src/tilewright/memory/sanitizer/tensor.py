"""Tensors as the sanitizer sees them: which bytes are whose, and which element a byte is of."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryKind, MemoryPlace, Segments
from tilewright.memory.mapping import Sight, sight_group
from tilewright.memory.runs import Extent, RunIndex

TAG_SHIFT = 48  # virtual addresses are below half of it: see memory.allocator
MAX_TAG = 2**14 - 1  # halves of bytes have one bit more, and all of it is an int64
NO_TAG = 0
KEPT_DEAD = 4096


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring bytes of a tensor in a memory of the PE that has them.

    There are as many again ``times`` times, at equal distances.
    """

    home: PeCoord
    offset: int  # in the memory
    address: int  # virtual
    num_bytes: int
    kind: MemoryKind = MemoryKind.HBM
    times: int = 1
    step: int = 0  # from one virtual address to the next
    offset_step: int = 0  # the same in the memory

    @property
    def place(self) -> MemoryPlace:
        return MemoryPlace.of(self.kind, self.home)

    @property
    def end(self) -> int:
        """The virtual byte behind the last of all."""
        return self.address + (self.times - 1) * self.step + self.num_bytes

    @property
    def extent(self) -> Extent:
        """All virtual bytes."""
        return Extent(self.address, self.num_bytes, self.times, self.step)

    @property
    def in_memory(self) -> Iterator[tuple[int, int]]:
        """Where all bytes are in the memory, as few offsets and sizes."""
        if self.times == 1 or self.offset_step == self.num_bytes:
            yield self.offset, self.times * self.num_bytes
            return
        for place in range(self.times):
            yield self.offset + place * self.offset_step, self.num_bytes

    def address_at(self, offset: int) -> int | None:
        """Return the virtual address of a byte of the memory; None if it has another one."""
        place, inside = 0, offset - self.offset
        if self.times > 1:
            place, inside = divmod(inside, self.offset_step)
        if not 0 <= place < self.times or not 0 <= inside < self.num_bytes:
            return None
        return self.address + place * self.step + inside


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

    ``sight`` says whose shards a PE may touch: its own, those of its SIP, or all.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    item_bits: int
    parts: Sequence[TensorPart]  # by address
    regions: Sequence[Region]
    sight: Sight = Sight.ALL
    number: int = 0  # in its book
    tag: int = NO_TAG  # that its addresses have, if there was one left
    freed_ps: int | None = None
    low: int = field(init=False)  # its first virtual byte
    high: int = field(init=False)  # behind its last one
    _views: dict[object, RunIndex[Region]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.low = min((region.address for region in self.regions), default=0)
        self.high = max((region.end for region in self.regions), default=0)

    def own_ranges(self, pe: PeCoord) -> Iterator[tuple[int, int]]:
        """Yield virtual ranges that a PE may touch; of those that repeat, from first to last."""
        for region in self._seen_by(sight_group(pe, self.sight)):
            yield region.address, region.end

    def _seen_by(self, group: object) -> Iterator[Region]:
        for region in self.regions:
            if group in (None, sight_group(region.home, self.sight)):
                yield region

    def _view(self, pe: PeCoord | None) -> RunIndex[Region]:
        """Return the virtual ranges that a PE may touch; None: that any PE may."""
        key = None if pe is None else sight_group(pe, self.sight)
        if key not in self._views:
            regions = self._seen_by(key)
            self._views[key] = RunIndex((region.extent, region) for region in regions)
        return self._views[key]

    def outside(self, pe: PeCoord | None, span: Segments) -> tuple[int, int] | None:
        """Of the bytes of a span that a PE may not touch: the first, and how many there are."""
        view = self._view(pe)
        if not any(view.missing(range(span.address, span.end))):
            return None
        found: list[range] = []
        for place in range(span.num_segments):
            start = span.address + place * span.stride_bytes
            found += view.missing(range(start, start + span.segment_bytes))
        return (found[0].start, sum(map(len, found))) if found else None

    def has(self, address: int) -> bool:
        """Whether a virtual byte is of any element, whoever has it."""
        return self._view(None).at(address) is not None

    def has_home(self, pe: PeCoord) -> bool:
        """Whether a PE has some of its bytes."""
        return any(region.home == pe for region in self.regions)

    def homes_of(self, address: int) -> list[PeCoord]:
        hit = self._view(None).at(address)
        return [] if hit is None else [region.home for region in hit.items]

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

    def __init__(self, tensors: Iterable[WatchedTensor] = ()) -> None:
        self._live: dict[int, WatchedTensor] = {}  # by number
        self._lows: list[int] = []  # where they begin, in order
        self._in_order: list[WatchedTensor] = []
        self._dead: dict[int, WatchedTensor] = {}
        self._num_tensors = 0
        self._by_tag: dict[int, WatchedTensor] = {}
        self._free_tags: list[int] = []
        for tensor in tensors:
            self.add(tensor)

    def __len__(self) -> int:
        """How many there ever were."""
        return self._num_tensors

    def __iter__(self) -> Iterator[WatchedTensor]:
        """Those that live, by address."""
        return iter(self._in_order)

    def add(self, tensor: WatchedTensor) -> WatchedTensor:
        """Take in a new tensor, which gets a number and, if there is one left, a tag."""
        self._num_tensors += 1
        tensor.number = self._num_tensors
        if self._free_tags:  # that no tensor has, of those that live or lived last
            tensor.tag = self._free_tags.pop()
        elif self._num_tensors <= MAX_TAG:
            tensor.tag = self._num_tensors
        self._by_tag[tensor.tag] = tensor
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
            forgotten = self._dead.pop(next(iter(self._dead)))
            if forgotten.tag != NO_TAG:
                self._free_tags.append(forgotten.tag)

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
                address = region.address_at(offset) if region.place == place else None
                if address is not None:
                    return tensor, address
        return None

    # -- tags ------------------------------------------------------------------------------------

    def tagged(self, address: int) -> int:
        """A virtual address that says which tensor it came from, whatever is added to it."""
        if address >> TAG_SHIFT:
            return address
        tensor = self.at(address)
        return address if tensor is None else address + (tensor.tag << TAG_SHIFT)

    def untagged(self, address: int, scale: int = 1) -> tuple[int, WatchedTensor | None]:
        """The address itself, and its tensor; ``scale`` is 2 for addresses of halves."""
        unit = scale << TAG_SHIFT
        tag = (address + unit // 2) // unit  # what was added may be negative
        if tag == NO_TAG:
            return address, None
        return address - tag * unit, self._by_tag.get(tag)
