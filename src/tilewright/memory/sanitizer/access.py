"""Accesses of programs and of the host, and what orders them.

A *strand* is a row of programs, each after the end of the one before: the accesses of one stream of
a PE. Inside a strand accesses go on beside each other, so what is complete is a set: a mask with a
bit for each access. What a strand knows of the others came by messages and atomics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace, Segments
from tilewright.memory.sanitizer.tensor import WatchedTensor


class Places(NamedTuple):
    """Small where its members are near each other, however long the strand is.

    >>> loads = Places.one(7000) | Places.one(7002)
    >>> loads.bits, list(loads.places())
    (5, [7000, 7002])
    """

    first: int
    bits: int  # from the first on

    @classmethod
    def one(cls, place: int) -> "Places":
        return cls(place, 1)

    @classmethod
    def up_to(cls, count: int) -> "Places":
        """The first so many of a strand."""
        return cls(0, (1 << count) - 1)

    @property
    def mask(self) -> int:
        """A bit for each place of the strand."""
        return self.bits << self.first

    def __or__(self, other: "Places") -> "Places":
        if not other.bits:
            return self
        if not self.bits:
            return other
        if self.first <= other.first:
            return Places(self.first, self.bits | other.bits << other.first - self.first)
        return Places(other.first, other.bits | self.bits << self.first - other.first)

    def places(self) -> Iterator[int]:
        """Lowest first."""
        bits = self.bits
        while bits:
            lowest = bits & -bits
            yield self.first + lowest.bit_length() - 1
            bits ^= lowest


NOWHERE = Places(0, 0)


Known = Mapping[int, int]
"""By strand: the mask of its accesses that are complete."""


def joined(one: Known, other: Known) -> Known:
    """What is known by both ways.

    >>> joined({0: 0b01}, {0: 0b10, 3: 0b1})
    {0: 3, 3: 1}
    """
    if not other or one is other:
        return one
    if not one:
        return other
    both = dict(one)
    for strand, mask in other.items():
        both[strand] = both.get(strand, 0) | mask
    return both


class Past:
    """What comes before an access or a message of a strand.

    Atomics among it have learned something from others by the time that they are complete, so
    ``known`` may be asked for only then.
    """

    __slots__ = ("_folded", "_known", "_others", "_own", "_places", "strand")

    def __init__(self, strand: "Strand", places: Places) -> None:
        self.strand = strand
        self._own = strand.own
        self._places = places
        self._others = strand.others
        self._folded = strand.folded
        self._known: Known | None = None

    @property
    def known(self) -> Known:
        """All of it, the strand's own accesses too."""
        if self._known is None:
            strand, others = self.strand, self._others
            own = self._own | self._places.mask
            for place in Places(0, own & strand.atomics & ~self._folded).places():
                others = joined(others, strand.acquired[place])
            self._known = joined(others, {strand.number: own} if own else {})
        return self._known

    def knows(self, strand: "Strand", place: int) -> bool:
        return bool(self.known.get(strand.number, 0) >> place & 1)


class Strand:
    """Counts accesses, and keeps what its running program knows.

    >>> from tilewright.memory.sanitizer.access import NOWHERE
    >>> sender, receiver = Strand(0), Strand(1)
    >>> store = sender.next_place()
    >>> receiver.learn_from(sender.past(NOWHERE))  # a message that does not wait for the store
    >>> receiver.past(NOWHERE).knows(sender, store)
    False
    >>> receiver.learn_from(sender.past(Places.one(store)))
    >>> receiver.past(NOWHERE).knows(sender, store)
    True
    """

    __slots__ = ("acquired", "atomics", "folded", "num_accesses", "number", "others", "own")

    def __init__(self, number: int) -> None:
        self.number = number
        self.num_accesses = 0
        self.own = 0  # a bit for each access that the running program knows to be complete
        self.others: Known = {}
        self.atomics = 0  # accesses that learn from others
        self.acquired: dict[int, Known] = {}  # by atomic that is complete: what it has learned
        self.folded = 0  # atomics whose knowledge is among the others'

    def next_place(self) -> int:
        self.num_accesses += 1
        return self.num_accesses - 1

    def past(self, places: Places) -> Past:
        """Of something that begins now and comes after these accesses."""
        return Past(self, places)

    def learn(self, places: Places) -> None:
        """The program has waited until these accesses are complete."""
        mask = places.mask
        self.own |= mask
        for place in Places(0, mask & self.atomics & ~self.folded).places():
            self.others = joined(self.others, self.acquired[place])
            self.folded |= 1 << place

    def expect(self, places: Places) -> None:
        """Whatever the program does from now on comes after these accesses."""
        self.own |= places.mask

    def learn_from(self, past: Past) -> None:
        """The program has a message that was sent after all that."""
        self.others = joined(self.others, past.known)

    def end_program(self) -> None:
        """The next program begins when all of this one is complete."""
        self.expect(Places.up_to(self.num_accesses))


class AccessKind(Enum):
    """What an access does with its bytes."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    ATOMIC_LOAD = "atomic load"
    ATOMIC_STORE = "atomic store"
    HOST_READ = "host read"
    HOST_WRITE = "host write"

    @property
    def reads(self) -> bool:
        return self in _ONLY_READ or self is AccessKind.ATOMIC

    @property
    def writes(self) -> bool:
        return self not in _ONLY_READ

    @property
    def is_atomic(self) -> bool:
        """Whether it may meet others of its sort at any time."""
        return self in _ATOMIC


_ONLY_READ = frozenset((AccessKind.LOAD, AccessKind.ATOMIC_LOAD, AccessKind.HOST_READ))
_ATOMIC = frozenset((AccessKind.ATOMIC, AccessKind.ATOMIC_LOAD, AccessKind.ATOMIC_STORE))


@dataclass(frozen=True, eq=False, slots=True)
class Launch:
    """Something that the host has begun: a kernel on PEs, or a transfer of its own.

    It comes after all that was begun before, but for what the host had not waited for then.
    """

    number: int
    name: str
    concurrent: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Access:
    """One command's use of memory, from its issue until the memory has served its last byte."""

    kind: AccessKind
    launch: Launch
    strand: Strand
    place: int  # in the strand
    past: Past | None  # until it is complete: what came before it
    actor: str  # who: a program and its PE, or the host
    line: str
    pe: PeCoord | None  # of the program
    item_bits: int
    pieces: Sequence[tuple[MemoryPlace, Segments]]  # which memory, and where there
    spans: Sequence[Segments] = ()  # in virtual addresses
    tensor: WatchedTensor | None = None  # that its pointer came from
    num_unmaps: int = 0  # that there had been when it was translated
    is_wrong: bool = False  # it has been reported, so that no other finding follows from it
    at_ps: int = -1  # when it was complete

    @property
    def num_bytes(self) -> int:
        parts = self.spans or [segments for _, segments in self.pieces]
        return sum(part.num_segments * part.segment_bytes for part in parts)


def is_ordered(earlier: Access, later: Access) -> bool:
    """Whether nothing can change that one is complete before the other begins.

    Inside a strand accesses to the same bytes keep the order of their program.
    """
    if earlier.strand is later.strand:
        return earlier.place < later.place
    launch = earlier.launch.number
    if launch < later.launch.number and launch not in later.launch.concurrent:
        return True
    return later.past is not None and later.past.knows(earlier.strand, earlier.place)
