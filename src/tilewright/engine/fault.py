"""What a core reports when it cannot go on, and the error that a user reads instead."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tilewright.engine.core import LAST_ACCESS_PS, LAST_PS, MAX_QUEUES, OWNER_SHIFT
from tilewright.engine.spec import limit_error
from tilewright.errors import EngineError, InternalError, TilewrightError, TimeLimitError
from tilewright.limits import MAX_PACKETS
from tilewright.units import MAX_PS


class FaultKind(IntEnum):
    """The numbers are shared with csrc."""

    TIME_LIMIT = 1
    TIME_REVERSED = 2
    ORDER = 3
    REENTERED = 4
    UNKNOWN_ROUTE = 5
    NO_RATE = 6
    NOT_ONE_SERVER = 7
    UNKNOWN_SIGNAL = 8
    UNKNOWN_TASK = 9
    SIGNAL_LIMIT = 10
    BAD_ROW = 11
    ID_LIMIT = 12
    PACKET_LIMIT = 13
    WAIT_LIMIT = 14
    QUEUE_LIMIT = 15
    UNKNOWN_TRIP = 16
    BAD_ADDRESS = 17
    HELD_MEMORY = 18
    LATE_ACCESS = 19
    AWAITED_SIGNAL = 20
    EVENT_LIMIT = 30
    CLOCK_LIMIT = 31


# Faults of calls that change nothing; after all others work may be half done.
HARMLESS = {
    FaultKind.REENTERED,
    FaultKind.UNKNOWN_ROUTE,
    FaultKind.NO_RATE,
    FaultKind.NOT_ONE_SERVER,
    FaultKind.UNKNOWN_SIGNAL,
    FaultKind.UNKNOWN_TRIP,
    FaultKind.BAD_ADDRESS,
    FaultKind.HELD_MEMORY,
    FaultKind.UNKNOWN_TASK,
    FaultKind.ID_LIMIT,
    FaultKind.PACKET_LIMIT,
    FaultKind.AWAITED_SIGNAL,
}


class CoreFault(Exception):  # noqa: N818  # not an error for users: it never leaves the engine package
    """Kind, then up to three numbers whose meaning the kind decides."""

    def __init__(self, kind: int, first: int = 0, second: int = 0, third: int = 0) -> None:
        super().__init__(kind, first, second, third)
        self.kind = FaultKind(kind)
        self.first = first
        self.second = second
        self.third = third


class Names(NamedTuple):
    """What servers and signals are called, by number."""

    servers: Sequence[str]
    signals: Sequence[str]


def id_text(item_id: int) -> str:
    """An id as people read it: the owner, then the owner's count.

    >>> id_text((3 << 40) + 7)
    '3:7'
    """
    return f"{item_id >> OWNER_SHIFT}:{item_id & ((1 << OWNER_SHIFT) - 1)}"


def first_line(error: BaseException) -> str:
    """An error's type and the first line of its text, for errors that follow from it.

    >>> first_line(LookupError("no such row" + chr(10) + "in any table"))
    'LookupError: no such row'
    """
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def error_of_fault(fault: CoreFault, names: Names, serving: str | None) -> TilewrightError:
    """``serving`` is the server whose Python code runs now, if any."""
    match fault.kind:
        case FaultKind.TIME_LIMIT:
            return _time_limit(fault, names)
        case FaultKind.LATE_ACCESS:
            where = f"memory {names.servers[fault.first]!r}"
            found = f"packet {id_text(fault.second)} at {fault.third} ps"
            expected = f"accesses up to {LAST_ACCESS_PS} ps"
            return TimeLimitError(where, found, expected, "use shorter times")
        case FaultKind.EVENT_LIMIT:
            where = f"engine at {fault.second} ps"
            return limit_error(where, f"more than {fault.first} events", "events", fault.first)
        case FaultKind.CLOCK_LIMIT:
            found = f"work left at {fault.first} ps"
            return limit_error("engine", found, "time", fault.first)
        case FaultKind.REENTERED:
            return reentered_error(serving)
        case FaultKind.TIME_REVERSED | FaultKind.ORDER:
            return _broken_order(fault, names)
        case FaultKind.UNKNOWN_TASK:
            fix = "pass an id that submit or task_id returned"
            found = f"the task id {id_text(fault.first)}"
            return EngineError("engine", found, "a task that has been submitted", fix)
        case FaultKind.SIGNAL_LIMIT:
            where = f"signal {names.signals[fault.first]!r}"
            found = f"a raise by {fault.second} beyond the limit"
            return EngineError(where, found, f"a value of at most {MAX_PS}", "raise it by less")
        case FaultKind.ID_LIMIT:
            found = f"more than 2^{OWNER_SHIFT} packets and tasks"
            fix = "submit as several owners"
            return EngineError(f"owner {fault.first}", found, "ids that fit", fix)
        case FaultKind.AWAITED_SIGNAL:
            where = f"signal {names.signals[fault.first]!r}"
            fix = "remove it when they have started"
            return EngineError(where, "a removal", "no task that waits for it", fix)
        case FaultKind.QUEUE_LIMIT:
            where = f"server {names.servers[fault.first]!r}"
            found = f"more than {MAX_QUEUES} inputs times virtual channels"
            return EngineError(where, found, "fewer queues", "put a server in front of some inputs")
        case FaultKind.WAIT_LIMIT:
            where = f"server {names.servers[fault.first]!r}"
            expected, fix = f"a sum of at most {MAX_PS} ps", "use shorter times"
            return TimeLimitError(where, "waiting times beyond int64", expected, fix)
        case _:
            return _wrong_graph(fault, names)


def error_of_violation(
    violation: tuple[str, int, int, int], names: Names, now_ps: int
) -> InternalError:
    """A conservation rule that does not hold."""
    rule, index, found, expected = violation
    place = f"route {index}" if rule.startswith("route") else f"server {names.servers[index]!r}"
    where = f"conservation of {rule}, {place}, at {now_ps} ps"
    return InternalError(where, str(found), str(expected), "report the run that did this")


def reentered_error(serving: str | None) -> EngineError:
    where = "engine" if serving is None else f"server {serving!r}"
    fix = "return (hold_ps, latency_ps) and let a task do the rest"
    found = "a call to the engine from inside a Python server"
    return EngineError(where, found, "calls between runs of the engine", fix)


def _time_limit(fault: CoreFault, names: Names) -> TimeLimitError:
    is_packet = fault.first >= 0
    where = f"server {names.servers[fault.first]!r}" if is_packet else "engine"
    item = f"{'packet' if is_packet else 'task'} {id_text(fault.second)}"
    found = f"a time of 2^62 ps or more for {item} at {fault.third} ps"
    return TimeLimitError(where, found, f"at most {LAST_PS} ps", "use shorter times")


def _broken_order(fault: CoreFault, names: Names) -> InternalError:
    if fault.kind is FaultKind.ORDER:
        where = f"server {names.servers[fault.first]!r}"
        found = f"packet {id_text(fault.second)} out of its order at {fault.third} ps"
    else:
        where = "engine"
        found = f"an event of {id_text(fault.second)} at {fault.third} ps, before the last one"
    return InternalError(where, found, "events in the order of their keys", "report the run")


def _wrong_graph(fault: CoreFault, names: Names) -> EngineError:
    where = f"task graph, task {fault.first}"
    number = fault.second
    match fault.kind:
        case FaultKind.UNKNOWN_ROUTE:
            parts = (f"route {number}", "a route of this engine", "use what add_route returned")
        case FaultKind.NOT_ONE_SERVER:
            parts = (f"a hold on route {number}", "a route of one server", "add a route of its own")
        case FaultKind.NO_RATE:
            found = f"a transfer through server {names.servers[number]!r}, which has no rate"
            parts = (found, "a rate or a service", "give it bytes_per_us or hold it instead")
        case FaultKind.PACKET_LIMIT:
            found = f"a transfer of {number} bytes"
            parts = (found, f"at most {MAX_PACKETS} packets", "cut it into several transfers")
        case FaultKind.HELD_MEMORY:
            found = f"a hold of memory {names.servers[number]!r}"
            parts = (found, "a server that is no memory", "read or write it, or hold a link to it")
        case FaultKind.BAD_ADDRESS:
            expected = f"an access inside memory {names.servers[fault.third]!r}"
            parts = (f"address (tag) {number}", expected, "correct the tag or the bytes")
        case FaultKind.UNKNOWN_TRIP:
            fix = "use what add_round_trip returned"
            parts = (f"round trip {number}", "a round trip of this engine", fix)
        case FaultKind.UNKNOWN_SIGNAL:
            parts = (f"signal {number}", "a signal of this engine", "use what add_signal returned")
        case _:
            parts = (f"fault {fault.kind.name}", "a known fault", "report it")
    return EngineError(where, *parts)
