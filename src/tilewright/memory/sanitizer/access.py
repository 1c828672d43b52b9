"""Accesses of programs and of the host, and what orders them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tilewright.machine.coords import PeCoord
from tilewright.memory.place import MemoryPlace
from tilewright.memory.sanitizer.happens_before import Past, Strand
from tilewright.memory.sanitizer.shadow import Segments
from tilewright.memory.sanitizer.tensor import WatchedTensor


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

    def comes_after(self, other: "Launch") -> bool:
        return other.number < self.number and other.number not in self.concurrent


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
        return sum(part.num_segments * part.num_bytes for part in parts)


def is_ordered(earlier: Access, later: Access) -> bool:
    """Whether nothing can change that one is complete before the other begins.

    Inside a strand accesses to the same bytes keep the order of their program.
    """
    if earlier.strand is later.strand:
        return earlier.place < later.place
    if later.launch.comes_after(earlier.launch):
        return True
    return later.past is not None and later.past.knows(earlier.strand, earlier.place)
