"""The kernel that runs any plan: one program for each PE of a rank."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from operator import add, and_, attrgetter, mul, or_, xor
from types import MappingProxyType
from typing import Any

from tilewright import language as tl
from tilewright.collectives.operation import Reduction, accumulation_dtype
from tilewright.collectives.plan import Move
from tilewright.collectives.schedule import Chunk, Job, Message

REDUCTIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "sum": add,
        "avg": add,
        "prod": mul,
        "min": tl.minimum,
        "max": tl.maximum,
        "band": and_,
        "bor": or_,
        "bxor": xor,
    }
)


_group_of = attrgetter("wave.group")
_wave_of = attrgetter("wave")

END_OF_TIME = 2**63 - 1  # a group that all others are before
LOADS_AHEAD = 8  # messages


def direction_to(rank: int) -> str:
    """How the rings of a rank's peers are called."""
    return f"rank{rank}"


def collective(
    sources: Any, targets: Any, job: tl.constexpr, reduction: tl.constexpr, ranks: tl.constexpr
) -> None:
    """Send, receive and combine chunks as the schedule of the job says.

    ``sources`` and ``targets`` are by part where its values come from and where they go; None for a
    part that a rank does not have, or need not have.
    """
    _Runner(sources, targets, job, reduction, ranks).run()  # type: ignore[arg-type]  # constants


class _Runner:
    """The values that a program holds while the collective goes on."""

    def __init__(self, sources: Any, targets: Any, job: Job, reduction: str, ranks: int) -> None:
        self._sources = sources
        self._targets = targets
        self._job = job
        self._schedule = job.schedule
        self._reduction = reduction
        self._ranks = ranks
        self._held: dict[Chunk, Any] = {}
        self._arriving: dict[Chunk, deque[tuple[Message, Any]]] = {}
        pointer = next(each for each in (*sources, *targets) if each is not None)
        self._dtype = pointer.dtype.element_ty
        self._wide = accumulation_dtype(Reduction(reduction), self._dtype)

    def run(self) -> None:
        """Group by group, and wave by wave in it: its receives are issued before its sends.

        In a serial schedule its messages are issued in their order instead.

        What arrives is waited for when its chunk is sent on, or else some groups later: other
        chunks are sent while it travels.
        """
        for group, of_group in groupby(self._schedule.messages, _group_of):
            messages = list(of_group)
            sends = deque(message for message in messages if message.move is Move.SEND)
            for _, of_wave in groupby(messages, _wave_of):
                for message in islice(sends, LOADS_AHEAD):  # ranks wait for what is sent next
                    if message.chunk not in self._arriving:
                        self._value(message.chunk)
                self._run_wave(list(of_wave), sends)
            self._settle(list(self._arriving), group - self._schedule.lag)
        self._settle(list(self._arriving), END_OF_TIME)
        for chunk in self._schedule.untouched:
            if self._sources[chunk.part] is not None:
                self._store(chunk, self._value(chunk))
                self._held.pop(chunk)

    def _run_wave(self, messages: Sequence[Message], sends: deque[Message]) -> None:
        for message in messages:
            if message.move is Move.SEND and self._schedule.is_serial:
                self._send(sends.popleft())
            if message.move is not Move.SEND:
                arriving = self._arriving.setdefault(message.chunk, deque())
                arriving.append((message, self._receive(message)))
            if message.move is Move.COMBINE:
                self._value(message.chunk)  # its own is loaded while the other travels
        while sends and sends[0].wave == messages[0].wave:
            self._send(sends.popleft())

    def _send(self, message: Message) -> None:
        chunk = message.chunk
        self._settle([chunk], message.wave.group)
        tl.send(direction_to(message.peer), self._value(chunk))
        if message.is_last_use:
            self._store(chunk, self._held.pop(chunk))
        elif message.is_replaced:
            self._held.pop(chunk)  # nobody needs it again: it would keep registers from others

    def _settle(self, chunks: list[Chunk], group: int) -> None:
        """Wait for what these chunks receive before a group."""
        for chunk in chunks:
            arriving = self._arriving.get(chunk, deque())
            while arriving and arriving[0][0].wave.group < group:
                message, received = arriving.popleft()
                self._held[chunk] = self._combined(message, tl.wait(received))
                if message.is_last_use:
                    self._store(chunk, self._held.pop(chunk))
            if not arriving:
                self._arriving.pop(chunk, None)

    def _receive(self, message: Message) -> Any:
        dtype = self._wide if message.is_partial else self._dtype
        return tl.recv_async(direction_to(message.peer), (message.chunk.size,), dtype)

    def _value(self, chunk: Chunk) -> Any:
        if chunk not in self._held:
            start = self._sources[chunk.part] + (self._job.source_starts[chunk.part] + chunk.start)
            self._held[chunk] = tl.load(start, shape=(chunk.size,))
        return self._held[chunk]

    def _combined(self, message: Message, received: Any) -> Any:
        if message.move is Move.TAKE:
            return received
        own, is_mean = self._value(message.chunk), self._reduction == "avg"
        if not message.completes or is_mean:
            received = received.to(self._wide)  # the op widens the other
        combined = REDUCTIONS[self._reduction](own, received)
        if not message.completes:
            return combined.to(self._wide)  # some ops give a wider one
        return (combined / self._ranks if is_mean else combined).to(self._dtype)

    def _store(self, chunk: Chunk, value: Any) -> None:
        target = self._targets[chunk.part]
        if target is not None:
            tl.store(target + (self._job.target_starts[chunk.part] + chunk.start), value)
