"""The seam between ``Engine`` and the two cores: integers in, integers out, the same meaning."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tilewright.engine.dram.spec import BankedSpec, SimpleSpec
from tilewright.engine.rows import Block, Row
from tilewright.engine.spec import CoreService

UNBOUNDED = -1
SOURCE = -1
OWNER_SHIFT = 40
MAX_QUEUES = 2**17  # in front of one server
NO_GATE = -1
NO_ROUTE = -1
NO_LIMIT = -1
NO_WAKE = 2**63 - 1
LAST_PS = 2**62 - 1  # the last instant of a run: every sum of two times fits int64
LAST_ACCESS_PS = 2**61  # when a memory takes in its last access: its decisions end before LAST_PS
NO_ROOM = -1  # instead of an issued value: it does not fit the far space
NO_VALUE = -1  # of a constant that is stored, of an update that begins
NO_WALK = 0  # of an access whose pages are at hand: commands count from 1
NO_TASK = -1  # instead of the end of a composite: none is open; of an issue: there was none
FROM_START = -1  # of a step: it comes after no other one, but when its command starts

IssuedAccess = tuple[int, int, int, int, int, int]
"""Round trip, segments, bytes of a segment, stride, address of an exchange; and the last command
that walks, or walked, for one of its pages: its own, an earlier one, or ``NO_WALK``.
"""


SignalPairs = tuple[tuple[int, int], ...]
IssuedStep = tuple[int, int, int, int, int, SignalPairs, SignalPairs, int, bool]
"""Kind, target, amount, tag, the step it comes after, waits, raises, served effect, and whether its
command ends with it.
"""


class WaitingTask(NamedTuple):
    """A task that is not complete when events run out."""

    task_id: int
    num_packets_left: int  # 0: it has not started
    afters: tuple[int, ...]  # ids of the unfinished tasks it comes after
    waits: tuple[tuple[int, int, int], ...]  # (signal, value now, value awaited)
    raises: tuple[int, ...]  # signals that it would raise


class WaitingPacket(NamedTuple):
    """A packet in a queue when events run out."""

    packet_id: int
    task_id: int
    server: int
    source: int  # the server it came from, or SOURCE
    waits_in: int  # the channel it waits in
    wants: int  # the channel behind the server that it needs
    num_flits: int
    last_hop: bool


class CompiledGraph(Protocol):
    """A core's own form of a graph; ``offsets`` are the tasks' ids less the first id."""

    @property
    def offsets(self) -> list[int]: ...


class Issuer(Protocol):
    """What both cores offer. A command is issued after the one before it, and after the end of the
    one a window before it.
    """

    @property
    def num_commands(self) -> int: ...
    @property
    def num_waiting(self) -> int:
        """Tasks that have not been taken."""
        ...

    @property
    def spilled_bytes(self) -> int: ...
    @property
    def far_free_bytes(self) -> int: ...

    def add_plan(self, plan: list[int]) -> int:
        """Two steps (route, hold_ps), the second may be 0 ps, and the bytes of the result."""
        ...

    def compute(self, plan: int, operands: list[int]) -> int:
        """A command that brings its operands near, works on them, and makes a value.

        A value that came from far stays near if there is room, and so does the result; what does
        not fit goes far and is brought again at each use.
        """
        ...

    def load(
        self, num_bytes: int, accesses: list[IssuedAccess], after: list[int], served: int
    ) -> int:
        """A command that reads a value from memory to the far space."""
        ...

    def store(
        self,
        value: int,
        num_bytes: int,
        accesses: list[IssuedAccess],
        after: list[int],
        served: int,
    ) -> int:
        """A command that writes bytes of a value, or of a constant, to memory; returns its end.

        What is not all in the far space goes there first.
        """
        ...

    def update(self, plan: int, value: int, operands: list[tuple[int, int]]) -> int:
        """A command whose result takes the place of a value that an update has made.

        ``NO_VALUE`` makes one, which has to fit the near space: ``NO_ROOM`` if it does not. Each
        operand is a value and the bytes of it that are needed; they are read from far each time and
        do not stay near.
        """
        ...

    def park(self, value: int) -> int:
        """A command that moves a value to the far space; its end, or ``NO_ROOM``."""
        ...

    @property
    def last_issue(self) -> int:
        """The task that issued the last command, or ``NO_TASK``."""
        ...

    def send(self, value: int, num_bytes: int, steps: list[IssuedStep]) -> int:
        """A command that takes a value, or a constant, elsewhere by given steps; returns its end.

        What is not all in the far space goes there first, as for a store.
        """
        ...

    def receive(self, num_bytes: int, steps: list[IssuedStep]) -> int:
        """A command that makes a value in the far space by given steps; ``NO_ROOM`` as a load."""
        ...

    def open_composite(self) -> None:
        """A command whose parts are the commands up to ``close_composite``.

        They come after its issue, are not issued themselves and enter no window.
        """
        ...

    def close_composite(self) -> int:
        """The task that ends with all parts of the composite."""
        ...

    def release(self, value: int) -> None:
        """The program holds the value no more: its bytes are free when its uses have ended."""
        ...

    def task_of(self, value: int) -> int:
        """The task after which a value is there."""
        ...

    def walk_of(self, command: int) -> int:
        """The task that ends with the walk of a command, which had one."""
        ...

    def stall(self, task: int) -> None:
        """The next command is not issued before this task has ended."""
        ...

    @property
    def stalls(self) -> list[int]:
        """The tasks that the next command is not issued before."""
        ...

    def finish(self) -> None:
        """The next command comes after all others; all values are gone."""
        ...

    def take_piece(self) -> CompiledGraph | None:
        """The tasks so far, to be submitted next; then ``note_first_id`` tells what that gave."""
        ...

    def note_first_id(self, first_id: int) -> None: ...

    def task_id(self, task: int) -> int:
        """The engine's id of a task that has been submitted."""
        ...


class Core(Protocol):
    """Owns events. Raises CoreFault; arguments have been checked by ``Engine``."""

    now_ps: int
    events: int
    was_submitted: bool

    def add_server(
        self,
        flit_ps: int,
        latency_ps: int,
        buffer_flits: int,
        credit_ps: int,
        round_robin: bool,
        whole: bool,
        service: CoreService | None,
    ) -> int: ...

    def add_banked_memory(
        self, spec: BankedSpec, numbers: list[int], bank_table: list[int], capacity_bytes: int
    ) -> int:
        """A server at which routes end; one core reads the spec, the other its numbers."""
        ...

    def add_simple_memory(
        self, spec: SimpleSpec, numbers: list[int], capacity_bytes: int
    ) -> int: ...

    def add_route(self, servers: list[int], channels: list[int]) -> int: ...

    def add_signal(self) -> int: ...

    def remove_signal(self, signal: int) -> None:
        """Let the next signal have this number; refused while tasks wait for it."""
        ...

    def add_gate(self, packets: int) -> int: ...

    def add_round_trip(
        self, out: int, back: int, gate: int, writes: bool, is_home: bool, inside: int
    ) -> int:
        """``gate`` and ``inside`` are -1 for none. ``is_home`` decides only how fast it runs."""
        ...

    def add_issuer(self, numbers: list[int]) -> Issuer:
        """``numbers`` are the fields of an IssuerSpec."""
        ...

    def compile(self, rows: list[Row | Block]) -> CompiledGraph: ...

    def submit(self, graph: CompiledGraph, owner: int, after: tuple[int, ...]) -> int: ...

    def submit_watched(self, graph: CompiledGraph, owner: int, after: tuple[int, ...]) -> int:
        """Submit a graph that is not empty and watch its last task, whose id is returned."""
        ...

    def perform(self, graph: CompiledGraph, owner: int) -> int:
        """Submit a graph that is not empty, for a program that waits for its last task.

        Returns what ``next_wake`` does. ``was_submitted`` tells whether an error came later.
        """
        ...

    def perform_rows(self, rows: list[Row | Block], owner: int) -> int:
        """The same for a graph that is used once: compile it on the way."""
        ...

    def performed_task(self, owner: int) -> int:
        """The last task of what the owner performed last."""
        ...

    def end_owner(self, owner: int) -> None:
        """Nothing more comes from an owner: its ids count as complete once its tasks are."""
        ...

    def next_wake(self) -> int:
        """Run until somebody wakes: ``~owner`` if it performed, else the id of a watched task.

        ``NO_WAKE`` if nothing is left.
        """
        ...

    def set_limits(self, max_events: int, last_ps: int) -> None:
        """Stop ``next_wake`` with a fault at the next event beyond these."""
        ...

    def raise_signal(self, signal: int, amount: int) -> None: ...

    def signal_value(self, signal: int) -> int: ...

    def watch(self, task_id: int) -> bool:
        """Ask for a wake-up; False if the task is already complete."""
        ...

    def is_complete(self, task_id: int) -> bool: ...

    def advance(self, until_ps: int) -> list[int]: ...

    def is_drained(self) -> bool: ...

    def take_effects(self) -> list[tuple[int, int]]: ...

    def take_effect_columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

    def set_trace(self, on: bool, first_owner: int, last_owner: int) -> None: ...

    def take_memory_trace(self) -> list[tuple[int, int, int, int, int]]:
        """Memory, packet, when it was decided, when its data were done, held up by refresh."""
        ...

    def memory_counters(self, server: int) -> list[tuple[int, ...]]:
        """The fields of ChannelCounters for each pseudo-channel."""
        ...

    def memory_openings(self, server: int) -> list[list[int]]:
        """Return how many rows each bank has opened, by pseudo-channel."""
        ...

    def take_trace(self) -> list[tuple[int, int, int, int, int]]: ...

    def busy_ps(self) -> list[int]:
        """Of all servers."""
        ...

    def server_counters(self, server: int) -> tuple[int, int, int, int, int, int, int, int]:
        """The fields of ServerStatistics behind the name."""
        ...

    def route_counters(self, route: int) -> tuple[int, int, int, int]:
        """The fields of RouteStatistics."""
        ...

    def first_violation(self) -> tuple[str, int, int, int] | None:
        """The first broken conservation rule: rule, server or route, found, expected."""
        ...

    def waiting_tasks(
        self,
    ) -> list[tuple[int, int, list[int], list[tuple[int, int, int]], list[int]]]: ...

    def waiting_packets(self) -> list[tuple[int, int, int, int, int, int, int, bool]]: ...

    def tamper(self, server: int, counter: str, amount: int) -> None:
        """Break a counter on purpose, so that tests see the conservation rules fire."""
        ...
