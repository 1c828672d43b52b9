"""What a program is seen to do: its accesses, and which of them each command comes after."""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import AddressError
from tilewright.executor.address import Piece
from tilewright.executor.effect import WatchedEffectLog
from tilewright.executor.layout import item_bits
from tilewright.executor.order import Span, SpanOrder
from tilewright.executor.run import Memory
from tilewright.language.dtype import int4
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Pointers
from tilewright.machine.coords import PeCoord
from tilewright.memory.address import MemoryPlace, Segments
from tilewright.memory.sanitizer.access import (
    NOWHERE,
    Access,
    AccessKind,
    Launch,
    Past,
    Places,
    Strand,
)
from tilewright.memory.sanitizer.sanitizer import Sanitizer
from tilewright.memory.sanitizer.tensor import WatchedTensor

ATOMIC = {AccessKind.LOAD: AccessKind.ATOMIC_LOAD, AccessKind.STORE: AccessKind.ATOMIC_STORE}


@dataclass(eq=False, slots=True)
class LaunchWatch:
    """What the programs of a launch share."""

    sanitizer: Sanitizer
    launch: Launch
    log: WatchedEffectLog
    memories: Sequence[Memory]
    _strands: dict[int, Strand] = field(default_factory=dict)  # by stream

    def strand(self, stream: object) -> Strand:
        """Of a stream, whose programs come one after the other."""
        key = id(stream)
        if key not in self._strands:
            self._strands[key] = self.sanitizer.begin_strand()
        return self._strands[key]


class Ancestry:
    """Which accesses of a program each of its values and tasks comes after."""

    def __init__(self, window: int) -> None:
        self._window = 2 * window  # commands; tasks of older ones are asked for no more
        self._values: dict[int, Places] = {}
        self._tasks: dict[int, Places] = {}
        self._recent: deque[tuple[int, int]] = deque()  # (command, task)
        self._composites: dict[int, Places] = {}
        self._parts = NOWHERE  # of the composite that is being told

    def of_values(self, values: Sequence[int]) -> Places:
        found = NOWHERE
        for value in values:
            found |= self._values.get(value, NOWHERE)
        return found

    def of_tasks(self, tasks: Sequence[int]) -> Places:
        found = NOWHERE
        for task in tasks:
            found |= self._tasks.get(task, NOWHERE) | self._composites.get(task, NOWHERE)
        return found

    def set_value(self, value: int, places: Places) -> None:
        self._values[value] = places
        self._parts |= places

    def set_task(self, task: int, places: Places, command: int) -> None:
        self._tasks[task] = places
        self._parts |= places
        recent = self._recent
        recent.append((command, task))
        while recent[0][0] < command - self._window:
            self._tasks.pop(recent.popleft()[1], None)

    def note_task_of(self, value: int, task: int, command: int) -> None:
        """Somebody has asked when a value is there."""
        if task not in self._tasks:
            self.set_task(task, self._values.get(value, NOWHERE), command)

    def release(self, value: int) -> None:
        self._values.pop(value, None)

    def open_composite(self) -> None:
        self._parts = NOWHERE

    def close_composite(self, task: int) -> None:
        self._composites[task] = self._parts


class ProgramWatch:
    """Between one program and the sanitizer.

    An access is seen three times: its addresses begin it, its translation says where it goes, and
    its issue what it comes after.
    """

    def __init__(self, shared: LaunchWatch, program: Any, stream: Any) -> None:
        self.ancestry = Ancestry(stream.pe.issuer.window)
        self._shared = shared
        self._program = program
        self._actor = str(program)
        self._strand = shared.strand(stream)
        self._pe: PeCoord = stream.pe.coord
        self._order = SpanOrder()
        self._expected: tuple[bool, bool] | None = None  # of the next access, if that is atomic
        # and of the access that has begun
        self._tensor: WatchedTensor | None = None
        self._spans: list[Span] = []
        self._pieces: list[tuple[MemoryPlace, Segments]] = []

    # -- addresses -------------------------------------------------------------------------------

    def tagged(self, address: int) -> int:
        """An address that says which tensor it is of."""
        return self._shared.sanitizer.tensors.tagged(address)

    def untagged(self, pointers: Pointers) -> Pointers:
        """Addresses as they are without a sanitizer, for a kernel that looks at them."""
        return self._untagged(pointers)[0]

    def expect_atomic(self, *, releases: bool = False, acquires: bool = False) -> None:
        """The next access may meet atomics at any time.

        It may come after all that its program has issued, and all that follows after it.
        """
        self._expected = releases, acquires

    def begin(self, kind: AccessKind, pointers: Pointers) -> Pointers:
        """Return the addresses of an access that begins, without tags."""
        found, self._tensor = self._untagged(pointers)
        expected, self._expected = self._expected, None
        self._kind = kind if expected is None else ATOMIC.get(kind, kind)
        self._releases, self._acquires = expected or (False, False)
        self._item_bits = item_bits(pointers.element)
        self._spans, self._pieces = [], []
        return found

    def _untagged(self, pointers: Pointers) -> tuple[Pointers, WatchedTensor | None]:
        affine, element = pointers.affine, pointers.element
        scale = 2 if element is int4 else 1
        base, tensor = self._shared.sanitizer.tensors.untagged(affine.base, scale)
        moved = affine.shifted(base - affine.base)
        return Pointers(pointers.program, moved, element, pointers.offsets), tensor

    # -- translation -----------------------------------------------------------------------------

    def note_pieces(self, spans: Sequence[Span], pieces: Sequence[Piece]) -> None:
        """Where a part of the access goes."""
        memories = self._shared.memories
        self._spans += spans
        self._pieces += [
            (
                memories[piece.memory].place,
                Segments(piece.address, piece.num_segments, piece.num_bytes, piece.stride_bytes),
            )
            for piece in pieces
        ]

    def note_fault(self, spans: Sequence[Span], fault: AddressError) -> None:
        """Note an access to bytes that the PE does not see, which ends the run."""
        self._spans += spans
        access = self._access(self._strand.past(NOWHERE))
        finding = self._shared.sanitizer.note_fault(access, fault.address)
        fault.add_note(str(finding))

    # -- commands --------------------------------------------------------------------------------

    def issue(self, after: Places, num_parts: int, served: int) -> tuple[int, Places]:
        """The access comes after these others: its effect, and what its own end comes after."""
        strand, writes, spans = self._strand, self._kind.writes, self._spans
        after |= self._order.before(spans, writes=writes)
        if self._releases:
            after |= Places.up_to(strand.num_accesses)
        access = self._access(strand.past(after))
        own = after | Places.one(access.place)
        self._order.note(spans, own, writes=writes)
        if access.kind.is_atomic:
            strand.atomics |= 1 << access.place
        if self._acquires:
            strand.expect(own)
        sanitizer = self._shared.sanitizer
        sanitizer.begin_access(access)

        def hear(at_ps: int) -> None:
            sanitizer.complete(access, at_ps)

        return self._shared.log.watch(served, num_parts, hear, self._program), own

    def _access(self, past: Past) -> Access:
        shared = self._shared
        tensor = self._tensor
        if tensor is None:
            tensor = shared.sanitizer.tensors.at(self._spans[0].address)
        return Access(
            self._kind,
            shared.launch,
            self._strand,
            self._strand.next_place(),
            past,
            self._actor,
            line_text(source_line()),
            self._pe,
            self._item_bits,
            self._pieces,
            self._spans,
            tensor,
        )

    def waited(self, task: int) -> None:
        """The program goes on after the end of a task."""
        self._strand.learn(self.ancestry.of_tasks((task,)))

    def ended(self) -> None:
        """All commands are issued; the next program of the stream begins when they are complete."""
        self._strand.end_program()

    # -- messages --------------------------------------------------------------------------------

    def sent(self, message: Hashable, value: int | None) -> None:
        """A message that leaves when its block is there."""
        after = NOWHERE if value is None else self.ancestry.of_values((value,))
        self._shared.sanitizer.note_send(message, self._strand.past(after))

    def received(self, message: Hashable, *, stays: bool = False) -> None:
        """Note that the program has waited for a message, which ``stays`` if it only looked."""
        self._shared.sanitizer.note_receive(message, self._strand, stays=stays)
