"""The rows of a task graph as the reference core reads them: checked, cut into packets, linked."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference_state import RoundTrip, Route, Size, TaskDefinition
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
from tilewright.limits import MAX_PACKETS


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
        return [definition.offset for definition in self.definitions]


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
    for entry in rows:
        for row in (entry,) if isinstance(entry, tuple) else _rows_of(entry):
            number = len(definitions)
            definition = _definition(number, row, routes, trips)
            definition.offset = offset
            if row[0] in (TRANSFER, EXCHANGE):
                definition.cut(packet_bytes)
                if definition.num_packets > MAX_PACKETS:
                    raise CoreFault(FaultKind.PACKET_LIMIT, number, row[2])
            offset += definition.num_packets
            definitions.append(definition)
            for index in definition.afters:
                definitions[index].dependents = (*definitions[index].dependents, number)
            for signal, _ in (*definition.waits, *definition.raises):
                if signal >= num_signals:
                    raise CoreFault(FaultKind.UNKNOWN_SIGNAL, number, signal)
    return _sorted_out(definitions, offset, size_of)


def _definition(
    number: int, row: Row, routes: list[Route], trips: list[RoundTrip]
) -> TaskDefinition:
    if row_problem(number, row) is not None:
        raise CoreFault(FaultKind.BAD_ROW, number)
    if row[0] == EXCHANGE:
        definition = TaskDefinition(row, _NO_ROUTE, _checked_trip(number, row[1], trips))
    else:
        definition = TaskDefinition(row, _checked_route(number, row[0], row[1], routes))
    _check_address(number, definition)
    return definition


def _sorted_out(
    definitions: list[TaskDefinition], num_ids: int, size_of: Callable[[int], Size]
) -> Graph:
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
    return Graph(definitions, num_ids, earlier_ids, lone, linked, max_delay_ps)


def _is_lone(definition: TaskDefinition) -> bool:
    """A packet that never waits for a credit, of a task that neither waits nor is awaited."""
    if definition.kind != TRANSFER or definition.num_packets != 1 or not definition.route.plain:
        return False
    edges = (definition.afters, definition.waits, definition.raises, definition.dependents)
    return not any(edges)


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
    if kind == HOLD and route.servers[0].memory is not None:
        raise CoreFault(FaultKind.HELD_MEMORY, row, route.servers[0].index)
    if kind == TRANSFER and not route.plain:
        for server in route.servers:
            if not server.flit_ps and server.service is None and server.memory is None:
                raise CoreFault(FaultKind.NO_RATE, row, server.index)
    return route
