"""Rings of launches, with the messages that were sent and are expected on each of them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tilewright.device.ipcq import Ring, RingKind
from tilewright.device.pe import Pe
from tilewright.errors import DeadlockError, KernelError, MessageError
from tilewright.executor.neighbour import Neighbours, Place
from tilewright.executor.stream import Stream
from tilewright.language.block_type import BlockType
from tilewright.language.front import Node
from tilewright.machine.coords import PeCoord
from tilewright.machine.node import place_name

MAX_LINES = 20  # rings that an error names


Message = tuple[BlockType, Node | None, str]
"""Its type, its value, and the line that sends it."""


@dataclass(eq=False, slots=True)
class Mailbox:
    """One ring between two PEs, with the types of the messages sent and expected on it.

    The n-th message sent must have the type of the n-th expected: the side that comes second raises
    KernelError. A message is forgotten when its receiver has it, or has ended.
    """

    ring: Ring
    sender: Place
    receiver: Place
    num_sent: int = 0  # fragments
    num_expected: int = 0
    num_messages_sent: int = 0
    num_messages_expected: int = 0
    sent: dict[int, Message] = field(default_factory=dict)  # by number, until the receiver has it
    _expected: dict[int, tuple[BlockType, str]] = field(default_factory=dict)  # until it is sent

    def add_sent(self, kind: BlockType, node: Node | None, line: str) -> int:
        """Note the next message that is sent, at a line; return its number."""
        number = self.num_messages_sent
        self.num_messages_sent += 1
        self.sent[number] = kind, node, line
        if number in self._expected:
            self._check(number, *self._expected.pop(number))
        return number

    def add_expected(self, kind: BlockType, line: str) -> int:
        """Note the next message that is asked for, at a line; return its number."""
        number = self.num_messages_expected
        self.num_messages_expected += 1
        if number in self.sent:
            self._check(number, kind, line)
        else:
            self._expected[number] = kind, line
        return number

    def forget_asked(self) -> None:
        """Forget the messages that were asked for: the receiver has ended."""
        if self.sent:
            first = self.num_messages_expected
            self.sent = {number: each for number, each in self.sent.items() if number >= first}

    @property
    def num_left(self) -> int:
        """How many messages were sent that no program has asked for."""
        return self.num_messages_sent - self.num_messages_expected

    def left_text(self) -> str:
        """Describe the messages that are left: how many, from whom to whom, sent at which lines."""
        first = self.num_messages_expected
        lines = Counter(line for number, (_, _, line) in self.sent.items() if number >= first)
        (sender, direction), (receiver, back) = self.sender, self.receiver
        places = ", ".join(
            line if count == 1 else f"{line} ({count} times)" for line, count in lines.items()
        )
        count = f"{self.num_left} of {self.num_messages_sent}"
        return (
            f"{count} from {place_name(sender)} to {direction!r}"
            f" ({place_name(receiver)}, whose tl.recv({back!r}) they wait for), sent at {places}"
        )

    def _check(self, number: int, wanted: BlockType, receiver_line: str) -> None:
        """Refuse a message whose two sides have different types."""
        kind, _, sender_line = self.sent[number]
        if kind is not wanted:
            found = f"message {number} of {self.ring.name}: {kind} is sent at {sender_line}"
            expected = f"{wanted}, as it is received"
            fix = "send and receive the same shape and dtype"
            raise KernelError(receiver_line, found, expected, fix)


@dataclass(eq=False, slots=True)
class Post:
    """All rings of a launch, or of an installation, by the names that both of their ends have.

    A ring may have several names at an end. With ``is_exclusive`` one stream of a PE at a time may
    use the rings there: ``claim`` raises KernelError for any other.
    """

    outgoing: Mapping[Place, Mailbox]
    incoming: Mapping[Place, Mailbox]
    neighbours: Neighbours
    built_by: object = None  # the launcher whose device has these rings
    is_exclusive: bool = False
    waiting: dict[PeCoord, list[int]] = field(default_factory=dict)  # numbers of hub programs
    _turns: Counter[PeCoord] = field(default_factory=Counter)
    _users: dict[PeCoord, Any] = field(default_factory=dict)  # the first that used its rings
    _inboxes: dict[PeCoord, list[Mailbox]] = field(default_factory=dict)  # by receiver, when asked

    @property
    def boxes(self) -> tuple[Mailbox, ...]:
        """The rings, each once, however many names it has."""
        return tuple(dict.fromkeys(self.outgoing.values()))

    def claim(self, program: Any) -> None:
        """Let the program's stream alone use the rings of its PE until ``release``."""
        here = program.stream.pe.coord
        user = self._users.setdefault(here, program)
        if user.stream.walker is program.stream.walker:  # of a watched stream too
            return
        found = f"the installed rings of {place_name(here)}, which {user} is using"
        expected = "one program at a time: installed rings are the PE's"
        fix = "wait for the launch that uses them, or give this one neighbours= of its own"
        if user.run is program.run:
            fix = f"launch it with resident=1, since {program} runs beside"
        raise program.error(found, expected, fix)

    def release(self, stream: Stream) -> None:
        """Let other streams use the rings of a PE: all programs of this one have ended."""
        here = stream.pe.coord
        user = self._users.get(here)
        if user is not None and user.stream.walker is stream.walker:
            del self._users[here]
        if not self._inboxes:
            for (coord, _), box in self.incoming.items():
                self._inboxes.setdefault(coord, []).append(box)
        for box in self._inboxes.get(here, ()):
            box.forget_asked()

    def renew(self, other: "Post") -> None:
        """Take the rings of ``other``, which nobody has used, in the place of these."""
        self.outgoing, self.incoming = other.outgoing, other.incoming
        self.built_by = other.built_by
        for state in (self.waiting, self._turns, self._users, self._inboxes):
            state.clear()

    def unreceived(self, launch: str) -> list[MessageError]:
        """Return an error if messages were sent that no program has asked for, else nothing."""
        found = self._unreceived_text()
        if not found:
            return []
        fix = "receive what is sent on every path through the kernel, or leave the tl.send out"
        return [MessageError(f"launch of {launch!r}", found, "a tl.recv for each tl.send", fix)]

    def explain(self, error: BaseException) -> None:
        """Add messages that no program has asked for to the report of a deadlock."""
        found = self._unreceived_text()
        if found and isinstance(error, DeadlockError):
            error.found = f"{error.found}\n{found}"

    def _unreceived_text(self) -> str:
        """Count and list messages that no program has asked for; empty if there are none."""
        left = [box for box in self.boxes if box.num_left > 0]
        if not left:
            return ""
        lines = [box.left_text() for box in left[:MAX_LINES]]
        if len(left) > MAX_LINES:
            lines.append(f"... and on {len(left) - MAX_LINES} more rings")
        total = sum(box.num_left for box in left)
        count = "1 message" if total == 1 else f"{total} messages"
        return f"{count} that no program has received:\n" + "\n".join(lines)

    def next_direction(self, here: PeCoord) -> str | None:
        """Return the next direction that a PE receives from, in turn; None if there is none."""
        directions = self.neighbours.table.get(here, {})
        names = [name for name in directions if (here, name) in self.incoming]
        if not names:
            return None
        self._turns[here] += 1
        return names[(self._turns[here] - 1) % len(names)]

    def find(self, program: Any, boxes: Mapping[Place, Mailbox], direction: Any) -> Mailbox:
        """Return the ring of a direction of the program's PE; raise KernelError if it has none."""
        here = program.stream.pe.coord
        box = boxes.get((here, direction))
        if box is None:
            names = ", ".join(name for coord, name in boxes if coord == here)
            found = f"the direction {direction!r} of {place_name(here)}"
            expected = f"one of {names}" if names else "a PE that has neighbours"
            fix = "name another, or add it to the rings of the launch"
            raise program.error(found, expected, fix)
        return box


def build_post(
    neighbours: Neighbours,
    pes: Mapping[PeCoord, Pe],
    build: Callable[..., Ring],
    built_by: object = None,
) -> Post:
    """Build the rings of all neighbours.

    ``build`` adds a ring to the engine: its name, its two PEs, its address.
    """
    outgoing: dict[Place, Mailbox] = {}
    incoming: dict[Place, Mailbox] = {}
    for sender, directions in neighbours.table.items():
        for direction, peer in directions.items():
            _check_peer(sender, direction, peer, pes)
            receiver = neighbours.arrives_at(sender, direction)
            name = f"{place_name(peer)}.ipcq.{receiver[1]}"
            if receiver in incoming:
                found = f"two senders to {name}"
                fix = "give each of them a direction of its own"
                raise KernelError("neighbours", found, "one sender a ring", fix)
            address = neighbours.addresses.get(receiver)
            if neighbours.ring.kind is RingKind.TCM:
                address = 0
            if address is None:
                found = f"no address of the ring {name} in {neighbours.ring.kind.value}"
                fix = "allocate its bytes there"
                raise KernelError("neighbours", found, "one for each ring", fix)
            ring = build(name, pes[sender], pes[peer], address)
            box = Mailbox(ring, (sender, direction), receiver)
            outgoing[sender, direction] = incoming[receiver] = box
    _add_aliases(neighbours, outgoing, incoming)
    return Post(MappingProxyType(outgoing), MappingProxyType(incoming), neighbours, built_by)


def _add_aliases(
    neighbours: Neighbours, outgoing: dict[Place, Mailbox], incoming: dict[Place, Mailbox]
) -> None:
    """Give rings their further names, at both of their ends."""
    table = neighbours.table
    names = {
        (pe, table[pe][direction]): (name, direction)
        for pe, aliases in neighbours.aliases.items()
        for name, direction in aliases.items()
    }
    for (pe, peer), (name, direction) in names.items():
        outgoing[pe, name] = outgoing[pe, direction]
        if (peer, pe) in names:
            _, sent_by = names[peer, pe]
            incoming[pe, name] = outgoing[peer, sent_by]


def _check_peer(sender: PeCoord, direction: str, peer: PeCoord, pes: Mapping[PeCoord, Pe]) -> None:
    where = f"neighbours of {place_name(sender)}"
    if sender == peer:
        raise KernelError(where, f"itself as {direction!r}", "another PE", "leave it out")
    for pe in (sender, peer):
        if pe not in pes:
            found = f"{place_name(pe)}, which runs no program"
            raise KernelError(where, found, "PEs of the launch", "launch on it, or leave it out")
