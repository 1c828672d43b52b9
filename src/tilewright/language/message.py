"""Messages between programs: who is whose neighbour, and what was sent and is expected."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tilewright.device.ipcq import Backpressure, Ring, RingKind, RingSpec
from tilewright.device.pe import Pe
from tilewright.engine import TaskGraph
from tilewright.engine.core import NO_ROOM, NO_TASK, NO_VALUE
from tilewright.engine.deadlock import Reason
from tilewright.errors import DeadlockError, KernelError, MessageError
from tilewright.language.block_type import BlockType
from tilewright.language.node import Node
from tilewright.language.program import Program
from tilewright.language.source import line_text, source_line
from tilewright.language.value import Block
from tilewright.machine.coords import PeCoord
from tilewright.machine.name import place_name

__all__ = ("Mailbox", "Neighbours", "PendingMessage", "Post", "build_post", "receive", "send")

MAX_LINES = 20  # rings that an error names

Place = tuple[PeCoord, str]
OPPOSITE: Mapping[str, str] = MappingProxyType(
    {"N": "S", "S": "N", "E": "W", "W": "E",
     "global_N": "global_S", "global_S": "global_N", "global_E": "global_W", "global_W": "global_E"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Directions by name: for each PE, who is there. ``addresses`` are of rings in memories."""

    table: Mapping[PeCoord, Mapping[str, PeCoord]]
    ring: RingSpec = field(default_factory=RingSpec)
    addresses: Mapping[Place, int] = field(default_factory=dict)

    def arrives_at(self, sender: PeCoord, direction: str) -> Place:
        """The receiver and its own name for the way back, the opposite one if it has that.

        With two PEs in a ring east and west both lead to the same peer: what leaves to the east
        has to come from the west.
        """
        peer = self.table[sender][direction]
        back = [name for name, other in self.table.get(peer, {}).items() if other == sender]
        wanted = OPPOSITE.get(direction)
        if wanted in back:
            return peer, str(wanted)
        if len(back) == 1:
            return peer, back[0]
        where = f"neighbours of {place_name(sender)}"
        found = f"{direction!r} to {place_name(peer)}, which comes back by {back or 'no direction'}"
        fix = "name the way back in the peer's directions"
        raise KernelError(where, found, "one way back", fix)


@dataclass(slots=True)
class Mailbox:
    """A ring, and by message what was sent and what is expected: the same, in the same order."""

    ring: Ring
    sender: Place
    receiver: Place
    sent: list[tuple[BlockType, Node | None, str]] = field(default_factory=list)
    expected: list[tuple[BlockType, str]] = field(default_factory=list)
    num_sent: int = 0  # fragments
    num_expected: int = 0

    @property
    def num_left(self) -> int:
        """How many messages were sent that no program has asked for."""
        return len(self.sent) - len(self.expected)

    def left_text(self) -> str:
        """Describe the messages that are left: how many, from whom to whom, sent at which lines."""
        lines = Counter(line for _, _, line in self.sent[len(self.expected) :])
        (sender, direction), (receiver, back) = self.sender, self.receiver
        places = ", ".join(
            line if count == 1 else f"{line} ({count} times)" for line, count in lines.items()
        )
        return (
            f"{self.num_left} of {len(self.sent)} from {place_name(sender)} to {direction!r}"
            f" ({place_name(receiver)}, whose tl.recv({back!r}) they wait for), sent at {places}"
        )

    def check(self, number: int) -> None:
        """Both sides of a message, once both are known."""
        if number >= min(len(self.sent), len(self.expected)):
            return
        (kind, _, sender_line), (wanted, receiver_line) = self.sent[number], self.expected[number]
        if kind is not wanted:
            found = f"message {number} of {self.ring.name}: {kind} is sent at {sender_line}"
            expected = f"{wanted}, as it is received"
            fix = "send and receive the same shape and dtype"
            raise KernelError(receiver_line, found, expected, fix)


@dataclass(eq=False, slots=True)
class Post:
    """All rings of a launch, from both of their ends."""

    outgoing: Mapping[Place, Mailbox]
    incoming: Mapping[Place, Mailbox]
    neighbours: Neighbours
    built_by: object = None  # the launcher whose device has these rings
    waiting: dict[PeCoord, list[int]] = field(default_factory=dict)  # numbers of hub programs
    _turns: Counter[PeCoord] = field(default_factory=Counter)

    def renew(self, other: "Post") -> None:
        """Take the rings of ``other``, which nobody has used, in the place of these."""
        self.outgoing, self.incoming = other.outgoing, other.incoming
        self.built_by = other.built_by
        self.waiting.clear()
        self._turns.clear()

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
            error.args = (error.where, error.found, *error.args[2:])

    def _unreceived_text(self) -> str:
        """Count and list messages that no program has asked for; empty if there are none."""
        left = [box for box in self.outgoing.values() if box.num_left > 0]
        if not left:
            return ""
        lines = [box.left_text() for box in left[:MAX_LINES]]
        if len(left) > MAX_LINES:
            lines.append(f"... and on {len(left) - MAX_LINES} more rings")
        total = sum(box.num_left for box in left)
        count = "1 message" if total == 1 else f"{total} messages"
        return f"{count} that no program has received:\n" + "\n".join(lines)

    def next_direction(self, here: PeCoord) -> str | None:
        """Of the directions that a PE receives from, each in its turn."""
        directions = self.neighbours.table.get(here, {})
        names = [name for name in directions if (here, name) in self.incoming]
        if not names:
            return None
        self._turns[here] += 1
        return names[(self._turns[here] - 1) % len(names)]

    def find(self, program: Program, boxes: Mapping[Place, Mailbox], direction: Any) -> Mailbox:
        here = program.stream.pe.coord
        box = boxes.get((here, direction))
        if box is None:
            names = ", ".join(name for coord, name in boxes if coord == here)
            found = f"the direction {direction!r} of {place_name(here)}"
            expected = f"one of {names}" if names else "a PE that has neighbours"
            fix = "name another, or add it to the neighbours of the launch"
            raise program.error(found, expected, fix)
        return box


def build_post(
    neighbours: Neighbours,
    pes: Mapping[PeCoord, Pe],
    build: Callable[..., Ring],
    built_by: object = None,
) -> Post:
    """``build`` adds a ring to the engine: its name, its two PEs, its address."""
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
            address = _address(neighbours, receiver, name)
            ring = build(name, pes[sender], pes[peer], address)
            box = Mailbox(ring, (sender, direction), receiver)
            outgoing[sender, direction] = incoming[receiver] = box
    return Post(MappingProxyType(outgoing), MappingProxyType(incoming), neighbours, built_by)


def _check_peer(sender: PeCoord, direction: str, peer: PeCoord, pes: Mapping[PeCoord, Pe]) -> None:
    where = f"neighbours of {place_name(sender)}"
    if sender == peer:
        raise KernelError(where, f"itself as {direction!r}", "another PE", "leave it out")
    for pe in (sender, peer):
        if pe not in pes:
            found = f"{place_name(pe)}, which runs no program"
            raise KernelError(where, found, "PEs of the launch", "launch on it, or leave it out")


def _address(neighbours: Neighbours, receiver: Place, name: str) -> int:
    if neighbours.ring.kind is RingKind.TCM:
        return 0
    address = neighbours.addresses.get(receiver)
    if address is None:
        found = f"no address of the ring {name} in {neighbours.ring.kind.value}"
        raise KernelError("neighbours", found, "one for each ring", "allocate its bytes there")
    return address


# -- what a program does ---------------------------------------------------------------------------


def _post(program: Program) -> Post:
    post = program.run.post
    if post is None:
        fix = "pass neighbours= to the launch"
        raise program.error("a message in a launch without neighbours", "neighbours", fix)
    found: Post = post
    return found


def send(program: Program, direction: Any, block: Block) -> None:
    """Issue the sending of a block; waits only while the ring is full."""
    post = _post(program)
    box = post.find(program, post.outgoing, direction)
    ring = box.ring
    sizes = ring.spec.fragments(block.type.num_bytes)
    box.sent.append((block.type, block.node, line_text(source_line())))
    box.check(len(box.sent) - 1)
    _wait_for_room(program, box, box.num_sent + len(sizes))
    steps = ring.send_steps(box.num_sent, sizes)
    box.num_sent += len(sizes)
    number = NO_VALUE if block.number is None else block.number
    if program.issuer.send(number, block.type.num_bytes, steps) == NO_ROOM:
        raise program.out_of_tcm(block.type, block.type.num_bytes)
    if program.watch is not None:
        program.watch.sent((ring.name, len(box.sent) - 1), block.number)


def _wait_for_room(program: Program, box: Mailbox, needed: int) -> None:
    """Until the last fragment that fits the ring at once has a credit.

    Of a message larger than the ring the queue takes the rest over, so that it can be received.
    """
    run, ring = program.run, box.ring
    engine, hub = run.device.engine, run.hub
    needed = min(needed, box.num_sent + ring.spec.slots)
    if engine.signal_value(ring.credits) >= needed:
        return  # there is room now, and credits are never taken back
    if program.issuer.last_issue != NO_TASK:
        last = program.issuer.last_issue
        _suspend(program, box, "room to send to", lambda why: program.stream.wait(last, why))
    if engine.signal_value(ring.credits) >= needed:
        return
    graph = TaskGraph()
    graph.timer(0, waits=((ring.credits, needed),))
    start_ps = hub.now_ps
    _suspend(program, box, "room to send to", lambda why: hub.perform(graph, why))
    look_ps = program.stream.pe.issuer.issue_ps
    if ring.spec.backpressure is Backpressure.SLEEP:
        hub.sleep(look_ps)
    else:
        hub.sleep((start_ps - hub.now_ps) % look_ps)  # the next look sees it


@dataclass(slots=True)
class PendingMessage:
    """A message that is expected; ``wait`` gives its block."""

    program: Program
    box: Mailbox
    number: int
    block: Block
    is_there: bool = False

    def wait(self) -> Block:
        program, box = self.program, self.box
        if not self.is_there:
            task = program.issuer.task_of(self.block.number or 0)
            what = f"message {self.number} from"
            _suspend(program, box, what, lambda why: program.stream.wait(task, why))
            kind, self.block.node, line = box.sent[self.number]
            box.sent[self.number] = kind, None, line  # its bytes are the receiver's now
            self.is_there = True
            if program.watch is not None:
                program.watch.received((box.ring.name, self.number))
        return self.block


def receive(program: Program, direction: Any, kind: BlockType) -> PendingMessage:
    """Issue the receiving of the next message from a direction; None takes each in its turn."""
    post = _post(program)
    if direction is None:
        direction = post.next_direction(program.stream.pe.coord)
    box = post.find(program, post.incoming, direction)
    line = source_line()
    box.expected.append((kind, line_text(line)))
    message = len(box.expected) - 1
    box.check(message)
    sizes = box.ring.spec.fragments(kind.num_bytes)
    steps = box.ring.receive_steps(box.num_expected, sizes)
    box.num_expected += len(sizes)
    number = program.issuer.receive(kind.num_bytes, steps)
    if number == NO_ROOM:
        raise program.out_of_tcm(kind, kind.num_bytes)
    program.note_tile(number, kind, line)
    return PendingMessage(program, box, message, Block(program, kind, None, number))


def _suspend(program: Program, box: Mailbox, what: str, wait: Callable[[Reason], None]) -> None:
    """Wait with words for the report of a deadlock; meanwhile peers find the program at its PE."""
    hub, waiting = program.run.hub, _post(program).waiting
    sends = program.stream.pe.coord == box.sender[0]
    (here, direction), (there, _) = (
        (box.sender, box.receiver) if sends else (box.receiver, box.sender)
    )
    thing, line, since_ps = f"{what} {direction!r}", line_text(source_line()), hub.now_ps
    polls = sends and box.ring.spec.backpressure is Backpressure.POLL

    def tell() -> str:
        verb = "polls" if polls else "waits"
        place = f"({place_name(there)}) at {line} since {since_ps} ps"
        return f"{program} {verb} for {thing} {place}; {_state(program, box)}"

    number = hub.current.number
    waiting.setdefault(here, []).append(number)
    try:
        wait(Reason(thing, line, tell, lambda: waiting.get(there, ())))
    finally:
        waiting[here].remove(number)


def _state(program: Program, box: Mailbox) -> str:
    """Of a ring, now."""
    ring, engine = box.ring, program.run.device.engine
    arrived, credits = engine.signal_value(ring.arrived), engine.signal_value(ring.credits)
    free = max(0, credits - box.num_sent)
    return (
        f"ring {ring.name}: {free} of {ring.spec.slots} slots free,"
        f" {arrived} fragments have arrived, {box.num_sent} sent, {box.num_expected} expected"
    )
