"""Tasks of the reference core: the rows of a graph, checked, cut into packets and linked."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tilewright.engine.core import (
    EARLIER,
    EXCHANGE,
    HOLD,
    TIMER,
    TRANSFER,
    Block,
    Pairs,
    Row,
    row_problem,
    rows_of,
)
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference.network import Route, Size, Step
from tilewright.limits import MAX_PACKETS


@dataclass(eq=False, slots=True)
class Gate:
    """Lets so many packets of exchanges be under way at once."""

    index: int
    room: int
    is_due: bool = False  # to let in what there is room for
    waiting: "list[tuple[int, int, Task]]" = field(default_factory=list)  # a heap: start, id, task


class RoundTrip(NamedTuple):
    """Where the packets of an exchange go, and what each of them carries back."""

    out: Route
    back: Route
    gate: Gate | None
    writes: bool
    inside: Route | None


@dataclass(eq=False, slots=True)
class Signal:
    """A counter that only grows."""

    value: int = 0
    waiters: "list[tuple[int, int, Task]]" = field(default_factory=list)  # a heap: threshold, id


@dataclass(eq=False, slots=True)
class TaskDefinition:
    """A row of a task graph; ``offset`` is its id less the id of the graph's first task."""

    kind: int
    amount: int
    delay_ps: int
    effect: int
    tag: int
    afters: tuple[int, ...]
    waits: Pairs
    raises: Pairs
    served_effect: int
    segment_bytes: int
    stride_bytes: int
    route: Route
    trip: RoundTrip  # of an exchange
    steps: list[Step]
    offset: int
    segment_packets: int = 1
    num_packets: int = 1
    size: Size = (0, 0)  # of the packet, if the task is lone
    dependents: tuple[int, ...] = ()

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


@dataclass(eq=False, slots=True)
class Task:
    """A task that is not complete yet."""

    definition: TaskDefinition
    id: int
    siblings: "dict[int, Task]"  # the tasks of its submission by their rows, but for lone ones
    pending: int = 0  # conditions that have not happened yet
    packets_left: int = 0
    packets_sent: int = 0  # of an exchange
    packets_served: int = 0
    end_ps: int = 0
    watched: bool = False
    performed: bool = False  # its owner's program waits for it
    followers: "list[Task] | None" = None  # tasks of later submissions


class Leg(Enum):
    """Which way a packet of an exchange goes."""

    OUT = 0
    INSIDE = 1  # data that are read, before they set out
    BACK = 2


@dataclass(eq=False, slots=True)
class Packet:
    """A packet in front of the server number ``hop`` of its route."""

    id: int
    task: Task
    route: Route
    flits: int
    num_bytes: int
    ready_ps: int
    tail_in_ps: int
    leg: Leg | None = None  # None: of a task that is no exchange
    hop: int = 0

    @property
    def queue_key(self) -> tuple[int, int]:
        return self.route.queue_key(self.hop)


@dataclass(eq=False, slots=True)
class Part:
    """A packet on a plain route, of a task that has others or is awaited."""

    task: Task
    num_bytes: int
    size: Size
    steps: list[Step]


class StartRun(NamedTuple):
    """Delayed tasks of one submission, in the order of their starts."""

    base_ps: int
    tasks: deque[Task]


class Graph(NamedTuple):
    """A compiled task graph."""

    definitions: list[TaskDefinition]
    num_ids: int
    earlier_ids: tuple[int, ...]  # of tasks that stand for earlier ones
    lone: list[TaskDefinition]
    linked: list[tuple[int, TaskDefinition]]  # all others, with their rows
    max_delay_ps: int

    @property
    def offsets(self) -> list[int]:
        """The tasks' ids less the first id."""
        return [definition.offset for definition in self.definitions]


_NO_ROUTE = Route([], [])
_NO_TRIP = RoundTrip(_NO_ROUTE, _NO_ROUTE, None, False, None)


def compile_graph(
    rows: list[Row | Block],
    routes: list[Route],
    trips: list[RoundTrip],
    num_signals: int,
    packet_bytes: int,
    size_of: Callable[[int], Size],
) -> Graph:
    """Read the rows of a TaskGraph; raises CoreFault with the number of a row that is wrong."""
    definitions: list[TaskDefinition] = []
    offset = 0
    for number, row in enumerate(rows_of(rows)):
        definition = _definition(number, row, routes, trips, offset)
        if definition.kind in (TRANSFER, EXCHANGE):
            definition.cut(packet_bytes)
            if definition.num_packets > MAX_PACKETS:
                raise CoreFault(FaultKind.PACKET_LIMIT, number, definition.amount)
        offset += definition.num_packets
        definitions.append(definition)
        for index in definition.afters:
            definitions[index].dependents = (*definitions[index].dependents, number)
        for signal, _ in (*definition.waits, *definition.raises):
            if signal >= num_signals:
                raise CoreFault(FaultKind.UNKNOWN_SIGNAL, number, signal)
    lone: list[TaskDefinition] = []
    linked: list[tuple[int, TaskDefinition]] = []
    for number, definition in enumerate(definitions):
        if _is_lone(definition):
            definition.size = size_of(definition.amount)
            lone.append(definition)
        else:
            linked.append((number, definition))
    earlier_ids = tuple(task.amount for task in definitions if task.kind == EARLIER)
    max_delay_ps = max((definition.delay_ps for definition in definitions), default=0)
    return Graph(definitions, offset, earlier_ids, lone, linked, max_delay_ps)


def _definition(
    number: int, row: Row, routes: list[Route], trips: list[RoundTrip], offset: int
) -> TaskDefinition:
    if row_problem(number, row) is not None:
        raise CoreFault(FaultKind.BAD_ROW, number)
    kind, target, amount, delay_ps, effect, tag, afters, waits, raises, served, segments = row
    route, trip = _NO_ROUTE, _NO_TRIP
    if kind == EXCHANGE:
        if target >= len(trips):
            raise CoreFault(FaultKind.UNKNOWN_TRIP, number, target)
        trip = trips[target]
    elif kind not in (TIMER, EARLIER):
        route = _checked_route(number, kind, target, routes)
    segment_bytes, stride_bytes = segments or (amount, 0)
    definition = TaskDefinition(
        kind, amount, delay_ps, effect, tag, afters, waits, raises, served, segment_bytes,
        stride_bytes, route, trip, route.steps, offset,
    )  # fmt: skip
    _check_address(number, definition)
    return definition


def _is_lone(definition: TaskDefinition) -> bool:
    """A packet that never waits for a credit, of a task that neither waits nor is awaited."""
    if definition.kind != TRANSFER or definition.num_packets != 1 or not definition.route.plain:
        return False
    edges = (definition.afters, definition.waits, definition.raises, definition.dependents)
    return not any(edges)


def _check_address(row: int, definition: TaskDefinition) -> None:
    """An access stays inside the memory that it ends in."""
    route = definition.trip.out if definition.kind == EXCHANGE else definition.route
    if definition.kind in (TRANSFER, EXCHANGE) and route.servers[-1].memory is not None:
        capacity = route.servers[-1].memory.capacity_bytes
        num_segments = definition.amount // definition.segment_bytes
        ends = (definition.tag, definition.tag + (num_segments - 1) * definition.stride_bytes)
        if not 0 <= min(ends) <= max(ends) <= capacity - definition.segment_bytes:
            raise CoreFault(FaultKind.BAD_ADDRESS, row, definition.tag, route.servers[-1].index)


def _checked_route(row: int, kind: int, target: int, routes: list[Route]) -> Route:
    if target >= len(routes):
        raise CoreFault(FaultKind.UNKNOWN_ROUTE, row, target)
    route = routes[target]
    if kind == HOLD and len(route.servers) != 1:
        raise CoreFault(FaultKind.NOT_ONE_SERVER, row, target)
    if kind == HOLD and route.servers[0].memory is not None:
        raise CoreFault(FaultKind.HELD_MEMORY, row, route.servers[0].index)
    if kind == TRANSFER and not route.plain:
        for server in route.servers:
            if not server.flit_ps and server.service is None and server.memory is None:
                raise CoreFault(FaultKind.NO_RATE, row, server.index)
    return route
