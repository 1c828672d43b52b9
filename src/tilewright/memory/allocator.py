"""Who has which space of a memory, or of the virtual addresses: the first hole that fits."""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from heapq import nlargest

from tilewright.errors import AllocationError, OutOfMemoryError
from tilewright.machine.build import Machine
from tilewright.memory.address import VirtualByte

MAX_NAMED = 3  # live allocations that an error tells


@dataclass(frozen=True, slots=True)
class Allocation:
    """Space that is taken, from ``offset`` on, and for whom."""

    offset: int
    num_bytes: int
    requester: str


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """How full a memory is, and was."""

    capacity_bytes: int
    used_bytes: int
    peak_bytes: int  # the most that ever was used
    largest_hole_bytes: int
    num_live: int  # allocations
    num_holes: int

    @property
    def free_bytes(self) -> int:
        return self.capacity_bytes - self.used_bytes


class Allocator:
    """Gives out the space ``start`` to ``start + capacity_bytes`` of one memory.

    A request gets the lowest offset at which it fits, aligned to ``alignment`` or to its own.
    What is given back joins the holes beside it.

    >>> allocator = Allocator("sip0.cube3.pe5.hbm", capacity_bytes=1024, alignment=64)
    >>> allocator.allocate(100, requester="a"), allocator.allocate(100, requester="b")
    (0, 128)
    >>> allocator.free(0, 100)
    >>> allocator.allocate(128, requester="c")
    0
    >>> allocator.statistics.largest_hole_bytes
    796
    """

    def __init__(
        self, name: str, capacity_bytes: int, *, start: int = 0, alignment: int = 1
    ) -> None:
        self.name = name
        self.capacity_bytes = capacity_bytes
        self._start = start
        self._alignment = alignment
        self._live: dict[int, Allocation] = {}
        self._used_bytes = self._peak_bytes = 0
        self._holes = _Holes()
        if capacity_bytes:
            self._holes.add(start, start + capacity_bytes)

    def __repr__(self) -> str:
        return f"<Allocator {self.name!r}, {self._used_bytes} of {self.capacity_bytes} bytes used>"

    def allocate(self, num_bytes: int, *, requester: str, alignment: int | None = None) -> int:
        """The offset of space for this many bytes; ``requester`` is named when there is none."""
        step = self._alignment if alignment is None else alignment
        for what, value in (("bytes", num_bytes), ("bytes of alignment", step)):
            if type(value) is not int or value < 1:
                text = f"{value!r} {what} asked for by {requester}"
                raise AllocationError(self.name, text, "an int of at least 1", "correct the size")
        found = self._holes.first_fit(num_bytes, step)
        if found is None:
            raise self._out_of_memory(num_bytes, step, requester)
        low, high = found
        offset = _aligned(low, step)
        self._holes.remove(low, high)
        if low < offset:
            self._holes.add(low, offset)
        if offset + num_bytes < high:
            self._holes.add(offset + num_bytes, high)
        self._live[offset] = Allocation(offset, num_bytes, requester)
        self._used_bytes += num_bytes
        self._peak_bytes = max(self._peak_bytes, self._used_bytes)
        return offset

    def free(self, offset: int, num_bytes: int) -> None:
        """Give back exactly what was taken."""
        live = self._live.get(offset)
        if live is None or live.num_bytes != num_bytes:
            raise self._wrong_free(offset, num_bytes, live)
        del self._live[offset]
        self._used_bytes -= num_bytes
        self._holes.join(offset, offset + num_bytes)

    @property
    def live(self) -> tuple[Allocation, ...]:
        """All that is taken, in the order of offsets."""
        return tuple(self._live[offset] for offset in sorted(self._live))

    @property
    def statistics(self) -> AllocatorStatistics:
        return AllocatorStatistics(
            self.capacity_bytes,
            self._used_bytes,
            self._peak_bytes,
            self._holes.largest_bytes,
            len(self._live),
            self._holes.count,
        )

    def _out_of_memory(self, num_bytes: int, alignment: int, requester: str) -> OutOfMemoryError:
        now = self.statistics
        largest = nlargest(MAX_NAMED, self.live, key=lambda taken: taken.num_bytes)
        named = [f"{taken.requester} ({taken.num_bytes} bytes)" for taken in largest]
        if len(self._live) > len(named):
            named.append(f"{len(self._live) - len(named)} more")
        aligned = f" aligned to {alignment}" if alignment > 1 else ""
        found = (
            f"{num_bytes} bytes{aligned} asked for by {requester} with {now.free_bytes} of "
            f"{now.capacity_bytes} free, {now.largest_hole_bytes} in one hole, "
            f"taken by {', '.join(named) or 'nobody'}"
        )
        return OutOfMemoryError(self.name, found, "a hole that fits", "free or shrink one of them")

    def _wrong_free(self, offset: int, num_bytes: int, live: Allocation | None) -> AllocationError:
        found = f"a free of {num_bytes} bytes at {offset:#x}"
        if live is None:
            expected = "the start of a live allocation"
        else:
            expected = f"the {live.num_bytes} bytes that {live.requester} took there"
        return AllocationError(self.name, found, expected, "free what was allocated, once")


class _Holes:
    """Free space, and a quick way to the lowest hole that fits.

    Holes are kept by the number of bits of their size, in the order of their offsets. Where sizes
    have more bits than the request, the lowest hole fits (unless alignment takes too much of it),
    so one look at each class is enough; only in the request's own class are holes tried in order.
    """

    def __init__(self) -> None:
        self._end_of: dict[int, int] = {}  # by offset
        self._start_of: dict[int, int] = {}  # by end
        self._classes: dict[int, list[int]] = {}

    @property
    def count(self) -> int:
        return len(self._end_of)

    @property
    def largest_bytes(self) -> int:
        highest = max((k for k, offsets in self._classes.items() if offsets), default=None)
        if highest is None:
            return 0
        return max(self._end_of[low] - low for low in self._classes[highest])

    def add(self, low: int, high: int) -> None:
        self._end_of[low] = high
        self._start_of[high] = low
        insort(self._classes.setdefault((high - low).bit_length(), []), low)

    def remove(self, low: int, high: int) -> None:
        del self._end_of[low], self._start_of[high]
        offsets = self._classes[(high - low).bit_length()]
        del offsets[bisect_left(offsets, low)]

    def join(self, low: int, high: int) -> None:
        """Add a hole, made one with those that touch it."""
        if (before := self._start_of.get(low)) is not None:
            self.remove(before, low)
            low = before
        if (after := self._end_of.get(high)) is not None:
            self.remove(high, after)
            high = after
        self.add(low, high)

    def first_fit(self, num_bytes: int, alignment: int) -> tuple[int, int] | None:
        """The lowest hole that has so many bytes behind an aligned offset."""
        best: int | None = None
        least_bits = num_bytes.bit_length()
        for bits in sorted(self._classes):
            if bits < least_bits:
                continue
            for low in self._classes[bits]:
                if best is not None and low >= best:
                    break
                if _aligned(low, alignment) + num_bytes <= self._end_of[low]:
                    best = low
                    break
        return None if best is None else (best, self._end_of[best])


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


BASE = 0x1_0000_0000  # below it, no number that a program counts with is an address
SPACE_BYTES = 64 * 2**30
END = 2**47  # the sanitizer tags addresses from bit 48 on, and sums may go below a tensor


def virtual_capacity_bytes(machine: Machine) -> int:
    """Return how many virtual bytes a context on this machine has.

    They are twice the bytes of all HBM, since a page that nobody gets lies behind each tensor, and
    at least 64 GiB, since a small tensor takes whole pages.
    """
    hbm_bytes = machine.grid.num_cubes * machine.spec.cube.hbm.capacity_bytes
    return min(max(2 * hbm_bytes, SPACE_BYTES), END - BASE)


class VirtualSpace:
    """Gives out whole pages, the lowest that are free, with a page that nobody gets behind them.

    So an access that leaves a tensor by less than a page is an error, and no other tensor's byte.

    >>> space = VirtualSpace(page_bytes=65_536)
    >>> hex(space.allocate(100_000, requester="tensor a"))
    '0x100000000'
    >>> hex(space.allocate(1, requester="tensor b"))
    '0x100030000'
    """

    def __init__(
        self, *, page_bytes: int, base: int = BASE, capacity_bytes: int = SPACE_BYTES
    ) -> None:
        self.page_bytes = page_bytes
        self._allocator = Allocator(
            "virtual space", capacity_bytes, start=base, alignment=page_bytes
        )

    @property
    def statistics(self) -> AllocatorStatistics:
        return self._allocator.statistics

    def allocate(self, num_bytes: int, *, requester: str) -> VirtualByte:
        """The start of pages for this many bytes."""
        return VirtualByte(self._allocator.allocate(self._rounded(num_bytes), requester=requester))

    def free(self, address: VirtualByte, num_bytes: int) -> None:
        """Give back the pages of what was asked for."""
        self._allocator.free(address, self._rounded(num_bytes))

    def _rounded(self, num_bytes: int) -> int:
        """With the page behind them."""
        return (-(-num_bytes // self.page_bytes) + 1) * self.page_bytes


class QuarantinedSpace(VirtualSpace):
    """So an address that somebody kept too long names nothing, rather than another tensor.

    Which addresses tensors have changes no simulated time.

    >>> space = QuarantinedSpace(page_bytes=65_536)
    >>> first = space.allocate(1, requester="tensor a")
    >>> space.free(first, 1)
    >>> space.allocate(1, requester="tensor b") == first
    False
    """

    def __init__(self, *, page_bytes: int, **limits: int) -> None:
        super().__init__(page_bytes=page_bytes, **limits)
        self._waiting: deque[tuple[VirtualByte, int]] = deque()

    def allocate(self, num_bytes: int, *, requester: str) -> VirtualByte:
        while True:
            try:
                return super().allocate(num_bytes, requester=requester)
            except OutOfMemoryError:
                if not self._waiting:
                    raise
                super().free(*self._waiting.popleft())

    def free(self, address: VirtualByte, num_bytes: int) -> None:
        """Later, when there is nothing else left; a wrong one is refused then."""
        self._waiting.append((address, num_bytes))
