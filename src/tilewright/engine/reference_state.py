"""The plain data of the reference core: servers, routes, packets, signals, tasks, graphs."""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from tilewright.engine.core import MAX_PACKETS, MAX_QUEUES, SOURCE, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.rows import (
    EARLIER,
    EXCHANGE,
    HOLD,
    NO_EFFECT,
    ONE_SEGMENT,
    TIMER,
    TRANSFER,
    Block,
    Row,
    row_problem,
)
from tilewright.engine.spec import CoreService
from tilewright.units import MAX_PS

__all__ = (
    "Gate",
    "Graph",
    "Leg",
    "Packet",
    "Queue",
    "RoundTrip",
    "Route",
    "Server",
    "Signal",
    "Task",
    "TaskDefinition",
    "compile_graph",
    "size_of",
    "trip_of",
)


Step = tuple["Server", int, int, int, int | None]
"""What a plain hop needs: server, flit time, head time, latency, the next server's index if any."""

# Packets, flits and bytes in one integer, so that a hop adds them up at once.
FLITS_SHIFT, PACKETS_SHIFT = 64, 128
FIELD_MASK = 2**64 - 1


def size_of(num_bytes: int, flit_bytes: int) -> tuple[int, int]:
    """The flits of a packet, and what it adds to a server's tally."""
    flits = -(-num_bytes // flit_bytes)
    return flits, num_bytes + (flits << FLITS_SHIFT) + (1 << PACKETS_SHIFT)


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
        "flit_ps",
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
        "round_robin",
        "service",
        "slots",
        "starts",
        "steps",
        "stretch_ps",
        "tally",
        "wait_ps",
        "waits",
        "whole",
    )

    def __init__(self, index: int, flit_ps: int, latency_ps: int, whole: bool) -> None:
        self.index = index
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
        self.tally = 0  # of packets that are not yet counted
        self.waits: list[tuple[int, int]] = []  # an eager server's (ready, start), not yet counted
        self.starts: list[int] = []  # its starts that lie ahead, of waits that are counted

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
        self.wait_ps += time_ps
        if self.wait_ps > MAX_PS:
            raise CoreFault(FaultKind.WAIT_LIMIT, self.index)

    def note_wait(self, ready_ps: int, start_ps: int) -> None:
        """An eager server knows at once how long a packet waits; its queue is counted later."""
        self.add_wait(start_ps - ready_ps)
        self.waits.append((ready_ps, start_ps))

    def count(self, now_ps: int) -> None:
        """Count what has been noted: packets, and how waits made the queue grow, up to now."""
        self.packets += self.tally >> PACKETS_SHIFT
        self.busy_ps += self.flit_ps * (self.tally >> FLITS_SHIFT & FIELD_MASK)
        self.num_bytes += self.tally & FIELD_MASK
        self.tally = 0
        changes = [(ready_ps, +1) for ready_ps, _ in self.waits]
        starts = self.starts + [start_ps for _, start_ps in self.waits]
        past = bisect_right(starts, now_ps)
        changes += [(start_ps, -1) for start_ps in starts[:past]]
        changes.sort()
        self._note_changes(changes)
        self.starts = starts[past:]
        self.waits.clear()

    def _note_changes(self, changes: list[tuple[int, int]]) -> None:
        """What ``note_queue`` does for each, in local names, for speed."""
        queue, changed_ps, queue_ps, max_queue = (
            self.queue, self.changed_ps, self.queue_ps, self.max_queue,
        )  # fmt: skip
        for at_ps, change in changes:
            if at_ps > changed_ps:
                queue_ps += queue * (at_ps - changed_ps)
                if queue > max_queue:
                    max_queue = queue
                changed_ps = at_ps
            queue += change
        self.queue, self.changed_ps = queue, changed_ps
        self.queue_ps, self.max_queue = min(queue_ps, MAX_PS), max_queue


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

    def queue_key(self, hop: int) -> tuple[int, int]:
        """The input and the channel in which a packet waits in front of a server."""
        if not hop:
            return SOURCE, self.channels[0]
        return self.servers[hop - 1].index, self.channels[hop - 1]


class Leg(Enum):
    """Which way a packet of an exchange goes."""

    OUT = 0
    BACK = 1


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
        "is_lone",
        "is_short",
        "kind",
        "num_packets",
        "offset",
        "raises",
        "route",
        "segment_bytes",
        "segment_packets",
        "served_effect",
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
        self.is_short = False  # a transfer of one packet that never waits for a credit
        self.is_lone = False  # such a one that starts nothing and raises nothing
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


class Graph(NamedTuple):
    """A compiled task graph."""

    definitions: list[TaskDefinition]
    num_ids: int
    earlier_ids: tuple[int, ...]  # of tasks that stand for earlier ones

    @property
    def offsets(self) -> list[int]:
        return [definition.offset for definition in self.definitions]


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

    def __init__(self, definition: TaskDefinition, task_id: int, siblings: list["Task"]) -> None:
        self.definition = definition
        self.id = task_id
        self.siblings = siblings  # all tasks of its submission
        self.pending = 0  # conditions that have not happened yet
        self.packets_left = 0
        self.packets_sent = self.packets_served = 0  # of an exchange
        self.end_ps = 0
        self.watched = False
        self.performed = False  # its owner's program waits for it
        self.followers: list[Task] | None = None  # tasks of later submissions


def trip_of(task: Task) -> RoundTrip:
    """Of a task that is an exchange."""
    trip = task.definition.trip
    if trip is None:
        raise CoreFault(FaultKind.UNKNOWN_TRIP, 0, task.id)
    return trip


def compile_graph(
    rows: list[Row | Block],
    routes: list[Route],
    trips: list[RoundTrip],
    num_signals: int,
    packet_bytes: int,
) -> Graph:
    """Read the rows of a TaskGraph; raises CoreFault with the number of a row that is wrong."""
    definitions: list[TaskDefinition] = []
    offset = 0
    for entry in rows:
        for row in (entry,) if isinstance(entry, tuple) else _rows_of(entry):
            number = len(definitions)
            if row_problem(number, row) is not None:
                raise CoreFault(FaultKind.BAD_ROW, number)
            if row[0] == EXCHANGE:
                definition = TaskDefinition(row, _NO_ROUTE, _checked_trip(number, row[1], trips))
            else:
                definition = TaskDefinition(row, _checked_route(number, row[0], row[1], routes))
            _check_address(number, definition)
            definition.offset = offset
            if row[0] in (TRANSFER, EXCHANGE):
                definition.cut(packet_bytes)
                if definition.num_packets > MAX_PACKETS:
                    raise CoreFault(FaultKind.PACKET_LIMIT, number, row[2])
                is_plain = row[0] == TRANSFER and definition.route.plain
                definition.is_short = is_plain and definition.num_packets == 1
            offset += definition.num_packets
            definitions.append(definition)
            for index in definition.afters:
                definitions[index].dependents = (*definitions[index].dependents, number)
            for signal, _ in (*definition.waits, *definition.raises):
                if signal >= num_signals:
                    raise CoreFault(FaultKind.UNKNOWN_SIGNAL, number, signal)
    for definition in definitions:
        is_end = not definition.dependents and not definition.raises
        definition.is_lone = definition.is_short and is_end
    earlier_ids = tuple(task.amount for task in definitions if task.kind == EARLIER)
    return Graph(definitions, offset, earlier_ids)


def _rows_of(block: Block) -> Iterator[Row]:
    for row in block.tolist():
        yield (*row, (), (), (), NO_EFFECT, ONE_SEGMENT)


_NO_ROUTE = Route([], [])


def _check_address(row: int, definition: TaskDefinition) -> None:
    """An access stays inside the memory that it ends in."""
    route = definition.route if definition.trip is None else definition.trip.out
    if definition.kind in (TRANSFER, EXCHANGE) and route.servers[-1].memory is not None:
        capacity = route.servers[-1].memory.capacity_bytes
        num_segments = definition.amount // definition.segment_bytes
        ends = (definition.tag, definition.tag + (num_segments - 1) * definition.stride_bytes)
        if not 0 <= min(ends) <= max(ends) <= capacity - definition.segment_bytes:
            raise CoreFault(FaultKind.BAD_ADDRESS, row, definition.tag, route.servers[-1].index)


def _checked_trip(row: int, target: int, trips: list[RoundTrip]) -> RoundTrip:
    if target >= len(trips):
        raise CoreFault(FaultKind.UNKNOWN_TRIP, row, target)
    return trips[target]


def _checked_route(row: int, kind: int, target: int, routes: list[Route]) -> Route:
    if kind in (TIMER, EARLIER):
        return _NO_ROUTE
    if target >= len(routes):
        raise CoreFault(FaultKind.UNKNOWN_ROUTE, row, target)
    route = routes[target]
    if kind == HOLD and len(route.servers) != 1:
        raise CoreFault(FaultKind.NOT_ONE_SERVER, row, target)
    if kind == TRANSFER and not route.plain:
        for server in route.servers:
            if not server.flit_ps and server.service is None and server.memory is None:
                raise CoreFault(FaultKind.NO_RATE, row, server.index)
    return route
