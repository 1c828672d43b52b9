"""Messages between programs: sending, receiving, and looking at what has arrived."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.device.ipcq import Backpressure
from tilewright.engine import TaskGraph
from tilewright.engine.core import NO_ROOM, NO_TASK, NO_VALUE, IssuedStep
from tilewright.engine.deadlock import Reason
from tilewright.executor.post import Mailbox, Post
from tilewright.executor.program import Program
from tilewright.language.block_type import BlockType
from tilewright.language.source import SourceLine, line_text, source_line
from tilewright.language.value import Block
from tilewright.machine.node import place_name


def _post(program: Program) -> Post:
    """Return the launch's own rings, else those that are installed on the program's PE."""
    run = program.run
    post = run.installed.get(program.stream.pe.coord) if run.post is None else run.post
    if post is None:
        fix = "install rings with install_ipcq before the launch, or pass neighbours= to it"
        raise program.error("a message in a launch without neighbours", "neighbours", fix)
    if post.is_exclusive:
        post.claim(program)
    return post


def send(program: Program, direction: Any, block: Block) -> None:
    """Issue the sending of a block; waits only while the ring is full."""
    program.hand_over_if_long()
    post = _post(program)
    box = post.find(program, post.outgoing, direction)
    ring = box.ring
    sizes = ring.spec.fragments(block.type.num_bytes)
    message = box.add_sent(block.type, block.node, line_text(source_line()))
    _wait_for_room(program, box, box.num_sent + len(sizes))
    steps = ring.send_steps(box.num_sent, sizes)
    box.num_sent += len(sizes)
    number = NO_VALUE if block.number is None else block.number
    if program.issuer.send(number, block.type.num_bytes, steps) == NO_ROOM:
        raise program.out_of_tcm(block.type, block.type.num_bytes)
    if program.watch is not None:
        program.watch.sent((ring.name, message), block.number)


def _wait_for_room(program: Program, box: Mailbox, needed: int) -> None:
    """Wait until the last fragment that fits the ring at once has a credit.

    The queue takes over the rest of a message that is larger than the ring.
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
        """Wait for the message and return its block."""
        program, box = self.program, self.box
        if not self.is_there:
            task = program.issuer.task_of(self.block.number or 0)
            what = f"message {self.number} from"
            _suspend(program, box, what, lambda why: program.stream.wait(task, why))
            _, self.block.node, _ = box.sent.pop(self.number)
            self.is_there = True
            if program.watch is not None:
                program.watch.received((box.ring.name, self.number))
        return self.block


def receive(program: Program, direction: Any, kind: BlockType) -> PendingMessage:
    """Issue the receiving of the next message from a direction; None takes each in its turn."""
    program.hand_over_if_long()
    post = _post(program)
    if direction is None:
        direction = post.next_direction(program.stream.pe.coord)
    box = post.find(program, post.incoming, direction)
    line = source_line()
    message = box.add_expected(kind, line_text(line))
    sizes = box.ring.spec.fragments(kind.num_bytes)
    steps = box.ring.receive_steps(box.num_expected, sizes)
    box.num_expected += len(sizes)
    return PendingMessage(program, box, message, _expected(program, kind, steps, line))


def _expected(
    program: Program, kind: BlockType, steps: list[IssuedStep], line: SourceLine
) -> Block:
    """Issue the receiving of a message whose value is not there yet."""
    number = program.issuer.receive(kind.num_bytes, steps)
    if number == NO_ROOM:
        raise program.out_of_tcm(kind, kind.num_bytes)
    program.note_tile(number, kind, line)
    return Block(program, kind, None, number)


def peek(program: Program, direction: Any, kind: BlockType) -> Block:
    """Wait for the next message from a direction and return its block; leave it in its ring.

    Neither reads the slots nor returns credits: the next receive gets the same message.
    """
    program.hand_over_if_long()
    post = _post(program)
    box = post.find(program, post.incoming, direction)
    number, sizes = box.num_messages_expected, box.ring.spec.fragments(kind.num_bytes)
    if len(sizes) > box.ring.spec.slots:
        found = f"a look at {kind}, {len(sizes)} fragments, in a ring of {box.ring.spec.slots}"
        fix = "use more or larger slots, or tl.recv, which makes room for the rest"
        raise program.error(found, "a message that fits the ring as a whole", fix)
    line = source_line()
    steps = box.ring.peek_steps(box.num_expected + len(sizes))
    block = _expected(program, kind, steps, line)
    task = program.issuer.task_of(block.number or 0)
    _suspend(program, box, f"message {number} from", lambda why: program.stream.wait(task, why))
    sent, block.node, sender_line = box.sent[number]
    if sent is not kind:
        found = f"message {number} of {box.ring.name}: {sent} is sent at {sender_line}"
        expected = f"{kind}, as it is looked at"
        raise program.error(found, expected, "use the sender's shape and dtype")
    if program.watch is not None:
        program.watch.received((box.ring.name, number), stays=True)
    return block


def _suspend(program: Program, box: Mailbox, what: str, wait: Callable[[Reason], None]) -> None:
    """Wait with words for the report of a deadlock; meanwhile peers find the program at its PE."""
    hub, waiting = program.run.hub, _post(program).waiting
    sends = program.stream.pe.coord == box.sender[0]
    ends = (box.sender, box.receiver) if sends else (box.receiver, box.sender)
    (here, direction), (there, _) = ends
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
    """Describe a ring as it is now."""
    ring, engine = box.ring, program.run.device.engine
    arrived, credits = engine.signal_value(ring.arrived), engine.signal_value(ring.credits)
    free = max(0, credits - box.num_sent)
    return (
        f"ring {ring.name}: {free} of {ring.spec.slots} slots free,"
        f" {arrived} fragments have arrived, {box.num_sent} sent, {box.num_expected} expected"
    )
