"""What packets cross in the reference core: servers with their queues and counters, routes."""

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from typing import Any

from tilewright.engine.core import MAX_QUEUES, SOURCE, UNBOUNDED
from tilewright.engine.dram.memory import MemoryCore
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.spec import CoreService
from tilewright.units import MAX_PS

Step = tuple["Server", int, int, int, int | None]
"""What a plain hop needs: server, flit time, head time, latency, the next server's index if any."""

Size = tuple[int, int]
"""The flits of a packet, and the bytes by which its last flit is not full."""

MAX_NOTED = 2**12  # waits, until a server counts those that it noted


def size_of(num_bytes: int, flit_bytes: int) -> Size:
    flits = -(-num_bytes // flit_bytes)
    return flits, flits * flit_bytes - num_bytes


@dataclass(eq=False, slots=True)
class Queue:
    """Packets in front of a server, as a heap of (ready, id, Packet)."""

    waiting: list[tuple[int, int, Any]] = field(default_factory=list)
    last: tuple[int, int] = (-1, -1)  # (ready, id) of the last packet that left


@dataclass(eq=False, slots=True)
class MemoryState:
    """A memory behind a server, and the packets that it serves."""

    core: MemoryCore
    capacity_bytes: int
    decide_ps: int | None = None  # when it next decides
    num_plans: int = 0  # makes events unique
    packets: dict[int, Any] = field(default_factory=dict)  # Packets that it serves, by id


@dataclass(eq=False, slots=True)
class Server:
    """Specification, state and counters of one server."""

    index: int
    flit_bytes: int
    flit_ps: int
    latency_ps: int
    buffer_flits: int
    credit_ps: int
    round_robin: bool
    whole: bool
    service: CoreService | None = None
    memory: MemoryState | None = None  # what packets end in
    eager: bool = field(init=False)  # never has to choose: one event per packet
    free_ps: int = 0
    grant_due: bool = False
    queues: dict[tuple[int, int], Queue] = field(default_factory=dict)
    slots: list[tuple[int, int]] = field(default_factory=list)  # of queues, in round-robin order
    last_slot: tuple[int, int] = (SOURCE, -1)
    credits: dict[int, int] = field(default_factory=dict)
    packets: int = 0
    num_bytes: int = 0
    busy_ps: int = 0
    stretch_ps: int = 0
    wait_ps: int = 0
    queue: int = 0
    queue_ps: int = 0
    max_queue: int = 0
    changed_ps: int = 0
    steps: dict[int | None, Step] = field(default_factory=dict)
    flits: list[int] = field(default_factory=list)  # of packets on plain routes, not yet counted
    empty_bytes: int = 0  # in their last flits
    # An eager server's waits that are not yet counted: both lists ascend.
    readies: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        has_choice = self.round_robin or self.service is not None or self.memory is not None
        self.eager = self.buffer_flits == UNBOUNDED and not has_choice

    def step_to(self, following: int | None) -> Step:
        """One tuple for all routes that go on alike, so that steps stay in the cache."""
        if following not in self.steps:
            head_ps = self.flit_ps + self.latency_ps
            step = (self, self.flit_ps, head_ps, self.latency_ps, following)
            self.steps[following] = step
        return self.steps[following]

    def slot_of(self, source: int, channel: int) -> tuple[int, int]:
        """Which queue a packet waits in; FIFO servers merge their inputs."""
        return source if self.round_robin else 0, channel

    def add_queue(self, slot: tuple[int, int]) -> None:
        if slot not in self.queues:
            self.queues[slot] = Queue()
            insort(self.slots, slot)
        if len(self.queues) > MAX_QUEUES:
            raise CoreFault(FaultKind.QUEUE_LIMIT, self.index)

    def note_queue(self, at_ps: int, change: int) -> None:
        """The queue grows or shrinks; only a length that lasts counts."""
        if at_ps > self.changed_ps:
            lasted = self.queue * (at_ps - self.changed_ps)
            self.queue_ps = min(self.queue_ps + lasted, MAX_PS)
            self.max_queue = max(self.max_queue, self.queue)
            self.changed_ps = at_ps
        self.queue += change

    def add_wait(self, time_ps: int) -> None:
        if self.wait_ps + time_ps > MAX_PS:
            raise CoreFault(FaultKind.WAIT_LIMIT, self.index)
        self.wait_ps += time_ps

    def note_wait(self, ready_ps: int, start_ps: int) -> None:
        """An eager server knows at once how long a packet waits; its queue is counted later."""
        if len(self.readies) >= MAX_NOTED:
            self.count(ready_ps)
        self.add_wait(start_ps - ready_ps)
        self.readies.append(ready_ps)
        self.starts.append(start_ps)

    def count(self, now_ps: int) -> None:
        """Count what has been noted up to now: packets, and how waits made the queue grow."""
        if self.flits:
            num_flits = sum(self.flits)
            self.packets += len(self.flits)
            self.busy_ps += self.flit_ps * num_flits
            self.num_bytes += self.flit_bytes * num_flits - self.empty_bytes
            self.flits.clear()
            self.empty_bytes = 0
        if self.starts:
            self._count_waits(now_ps)
        self.note_queue(now_ps, 0)

    def counters(self, now_ps: int) -> tuple[int, int, int, int, int, int, int, int]:
        """The fields of ServerStatistics behind the name, with the queue counted up to now."""
        self.count(now_ps)
        return (
            self.packets, self.num_bytes, self.busy_ps, self.busy_ps + self.stretch_ps,
            self.wait_ps, self.queue_ps, self.max_queue, self.free_ps,
        )  # fmt: skip

    def _count_waits(self, now_ps: int) -> None:
        """What ``note_queue`` would have done at each ready and start up to now.

        The queue's time integral is the time until now behind all readies, less that behind all
        starts. It was longest when some packet got ready: those before it that had not started
        were in front of it.
        """
        readies, starts = self.readies, self.starts
        for place, ready_ps in enumerate(readies, start=self.queue + 1):
            if ready_ps == now_ps:
                break  # the queue of this instant has not lasted yet
            queue = place - bisect_right(starts, ready_ps)
            if queue > self.max_queue:
                self.max_queue = queue
        past = starts[: bisect_right(starts, now_ps)]
        if now_ps > self.changed_ps:
            self.max_queue = max(self.max_queue, self.queue)
        lasted_ps = self.queue * (now_ps - self.changed_ps)
        lasted_ps += len(readies) * now_ps - sum(readies)
        lasted_ps -= len(past) * now_ps - sum(past)
        self.queue_ps = min(self.queue_ps + lasted_ps, MAX_PS)
        self.changed_ps = now_ps
        self.queue += len(readies) - len(past)
        self.starts = starts[len(past) :]
        readies.clear()


class Route:
    """Servers with the channel behind each, and what went in and came out."""

    __slots__ = (
        "bytes_in", "bytes_out", "channels", "packets_in", "packets_out", "plain", "servers",
        "steps",
    )  # fmt: skip

    def __init__(self, servers: list[Server], channels: list[int]) -> None:
        self.servers = servers
        self.channels = channels
        self.packets_in = self.bytes_in = self.packets_out = self.bytes_out = 0
        self.plain = all(server.eager and not server.whole for server in servers)
        following = [*(server.index for server in servers[1:]), None]
        self.steps = [
            server.step_to(index) for server, index in zip(servers, following, strict=False)
        ]

    def enter(self, num_bytes: int) -> None:
        self.packets_in += 1
        self.bytes_in += num_bytes

    def leave(self, num_bytes: int) -> None:
        self.packets_out += 1
        self.bytes_out += num_bytes

    def queue_key(self, hop: int) -> tuple[int, int]:
        """The input and the channel in which a packet waits in front of a server."""
        if not hop:
            return SOURCE, self.channels[0]
        return self.servers[hop - 1].index, self.channels[hop - 1]
