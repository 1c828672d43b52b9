"""The plain data of the reference core: servers, routes, packets, signals, tasks."""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from tilewright.engine.core import MAX_QUEUES, SOURCE, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.rows import Row
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


class Queue:
    """Packets in front of a server, as a heap of (ready, id, packet)."""

    __slots__ = ("last", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, Packet]] = []
        self.last = (-1, -1)  # (ready, id) of the last packet that left


class Server:
    """Specification, state and counters of one server."""

    __slots__ = (
        "buffer_flits",
        "busy_ps",
        "changed_ps",
        "credit_ps",
        "credits",
        "eager",
        "empty_bytes",
        "flit_bytes",
        "flit_ps",
        "flits",
        "free_ps",
        "grant_due",
        "head_ps",
        "index",
        "last_slot",
        "latency_ps",
        "max_queue",
        "memory",
        "num_bytes",
        "packets",
        "queue",
        "queue_ps",
        "queues",
        "readies",
        "round_robin",
        "service",
        "slots",
        "starts",
        "steps",
        "stretch_ps",
        "wait_ps",
        "whole",
    )

    def __init__(
        self, index: int, flit_bytes: int, flit_ps: int, latency_ps: int, whole: bool
    ) -> None:
        self.index = index
        self.flit_bytes = flit_bytes
        self.flit_ps = flit_ps
        self.latency_ps = latency_ps
        self.head_ps = flit_ps + latency_ps
        self.whole = whole
        self.buffer_flits = UNBOUNDED
        self.credit_ps = 0
        self.round_robin = False
        self.service: CoreService | None = None
        self.memory: Any = None  # what packets end in: a MemoryState
        self.eager = True  # never has to choose: one event per packet
        self.free_ps = 0
        self.grant_due = False
        self.queues: dict[tuple[int, int], Queue] = {}
        self.slots: list[tuple[int, int]] = []  # the keys of queues in round-robin order
        self.last_slot = (SOURCE, -1)
        self.credits: dict[int, int] = {}
        self.packets = self.num_bytes = self.busy_ps = self.stretch_ps = self.wait_ps = 0
        self.queue = self.queue_ps = self.max_queue = self.changed_ps = 0
        self.steps: dict[int | None, Step] = {}
        self.flits: list[int] = []  # of packets on plain routes that are not yet counted
        self.empty_bytes = 0  # in their last flits
        # An eager server's waits that are not yet counted: both lists ascend.
        self.readies: list[int] = []
        self.starts: list[int] = []

    def step_to(self, following: int | None) -> Step:
        """One tuple for all routes that go on alike, so that steps stay in the cache."""
        if following not in self.steps:
            step = (self, self.flit_ps, self.head_ps, self.latency_ps, following)
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

    def choose(self, has_room: "Callable[[Packet], bool]") -> tuple[int, int] | None:
        """The slot of the queue whose first packet starts now; a memory says if it has room."""
        slots = [slot for slot in self.slots if self._may_start(self.queues[slot], has_room)]
        if not slots:
            return None
        if self.round_robin:
            return slots[bisect_right(slots, self.last_slot) % len(slots)]
        return min(slots, key=lambda slot: self.queues[slot].waiting[0][:2])

    def _may_start(self, queue: Queue, has_room: "Callable[[Packet], bool]") -> bool:
        if not queue.waiting:
            return False
        packet = queue.waiting[0][2]
        if self.memory is not None:
            return has_room(packet)
        if self.buffer_flits == UNBOUNDED or packet.hop + 1 == len(packet.route.servers):
            return True
        channel = packet.route.channels[packet.hop]
        return self.credits.setdefault(channel, self.buffer_flits) >= packet.flits

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
        "bytes_in",
        "bytes_out",
        "channels",
        "packets_in",
        "packets_out",
        "plain",
        "servers",
        "steps",
    )

    def __init__(self, servers: list[Server], channels: list[int]) -> None:
        self.servers = servers
        self.channels = channels
        self.packets_in = self.bytes_in = self.packets_out = self.bytes_out = 0
        self.plain = all(server.eager and not server.whole for server in servers)
        self.steps = [
            server.step_to(servers[hop + 1].index if hop + 1 < len(servers) else None)
            for hop, server in enumerate(servers)
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


class Leg(Enum):
    """Which way a packet of an exchange goes."""

    OUT = 0
    INSIDE = 1  # data that are read, before they set out
    BACK = 2


class Packet:
    """A packet in front of the server number ``hop`` of its route."""

    __slots__ = (
        "flits",
        "hop",
        "id",
        "leg",
        "num_bytes",
        "ready_ps",
        "route",
        "tail_in_ps",
        "task",
    )

    def __init__(
        self, packet_id: int, task: "Task", route: Route, flits: int, num_bytes: int, at_ps: int
    ) -> None:
        self.id = packet_id
        self.task = task
        self.route = route
        self.leg: Leg | None = None
        self.flits = flits
        self.num_bytes = num_bytes
        self.hop = 0
        self.ready_ps = at_ps
        self.tail_in_ps = at_ps

    @property
    def queue_key(self) -> tuple[int, int]:
        return self.route.queue_key(self.hop)


class Part:
    """A packet on a plain route, of a task that has others or is awaited."""

    __slots__ = ("num_bytes", "size", "steps", "task")

    def __init__(self, task: "Task", num_bytes: int, size: Size) -> None:
        self.task = task
        self.num_bytes = num_bytes
        self.size = size
        self.steps = task.definition.steps


class Gate:
    """Lets so many packets of exchanges be under way at once."""

    __slots__ = ("index", "is_due", "room", "waiting")

    def __init__(self, index: int, room: int) -> None:
        self.index = index
        self.room = room
        self.is_due = False  # to let in what there is room for
        self.waiting: list[tuple[int, int, Task]] = []  # a heap of (start, id, task)


class RoundTrip(NamedTuple):
    """Where the packets of an exchange go, and what each of them carries back."""

    out: Route
    back: Route
    gate: Gate | None
    writes: bool
    inside: Route | None


class Signal:
    """A counter that only grows."""

    __slots__ = ("value", "waiters")

    def __init__(self) -> None:
        self.value = 0
        self.waiters: list[tuple[int, int, Task]] = []  # a heap of (threshold, id, task)


class TaskDefinition:
    """A row of a task graph; ``offset`` is its id less the id of the graph's first task."""

    __slots__ = (
        "afters",
        "amount",
        "delay_ps",
        "dependents",
        "effect",
        "kind",
        "num_packets",
        "offset",
        "raises",
        "route",
        "segment_bytes",
        "segment_packets",
        "served_effect",
        "size",
        "steps",
        "stride_bytes",
        "tag",
        "trip",
        "waits",
    )

    def __init__(self, row: Row, route: Route, trip: RoundTrip | None = None) -> None:
        self.kind, _, self.amount, self.delay_ps, self.effect, self.tag = row[:6]
        self.afters, self.waits, self.raises, self.served_effect = row[6:10]
        self.segment_bytes, self.stride_bytes = row[10] or (self.amount, 0)
        self.segment_packets = 1
        self.route = route
        self.trip = trip  # of an exchange
        self.steps = route.steps
        self.size: Size = (0, 0)  # of the packet, if the task is lone
        self.num_packets = 1
        self.offset = 0
        self.dependents: tuple[int, ...] = ()

    def cut(self, packet_bytes: int) -> None:
        """Of a transfer or an exchange: into packets, none with bytes of two segments."""
        self.segment_packets = -(-self.segment_bytes // packet_bytes)
        self.num_packets = self.amount // self.segment_bytes * self.segment_packets

    def part(self, place: int, packet_bytes: int) -> tuple[int, int]:
        """Of a packet: where its bytes begin, counted from the tag, and how many it has."""
        segment, place = divmod(place, self.segment_packets)
        before = place * packet_bytes
        num_bytes = min(self.segment_bytes - before, packet_bytes)
        return segment * self.stride_bytes + before, num_bytes


class Task:
    """A task that is not complete yet."""

    __slots__ = (
        "definition",
        "end_ps",
        "followers",
        "id",
        "packets_left",
        "packets_sent",
        "packets_served",
        "pending",
        "performed",
        "siblings",
        "watched",
    )

    def __init__(
        self, definition: TaskDefinition, task_id: int, siblings: dict[int, "Task"]
    ) -> None:
        self.definition = definition
        self.id = task_id
        self.siblings = siblings  # the tasks of its submission by their rows, but for lone ones
        self.pending = 0  # conditions that have not happened yet
        self.packets_left = 0
        self.packets_sent = self.packets_served = 0  # of an exchange
        self.end_ps = 0
        self.watched = False
        self.performed = False  # its owner's program waits for it
        self.followers: list[Task] | None = None  # tasks of later submissions


class StartRun:
    """Delayed tasks of one submission, in the order of their starts."""

    __slots__ = ("base_ps", "tasks")

    def __init__(self, base_ps: int, tasks: Iterable[Task]) -> None:
        self.base_ps = base_ps
        self.tasks = deque(tasks)


def trip_of(task: Task) -> RoundTrip:
    """Of a task that is an exchange."""
    trip = task.definition.trip
    if trip is None:
        raise CoreFault(FaultKind.UNKNOWN_TRIP, 0, task.id)
    return trip
