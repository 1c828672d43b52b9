"""What a core reports when it cannot go on; ``Engine`` turns it into what a user reads."""

from enum import IntEnum


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
