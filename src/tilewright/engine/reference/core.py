"""The living definition of ``docs/engine.md``: events in the order of (time, phase, id)."""

from typing import Any

from tilewright.engine.core import LAST_PS, NO_LIMIT, NO_WAKE, UNBOUNDED, Block, Row
from tilewright.engine.dram.memory import MemoryCore, ReferenceBankedCore, ReferenceSimpleCore
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.issuer import Issuer, IssuerSpec
from tilewright.engine.reference.graph import (
    Gate,
    Graph,
    Packet,
    Part,
    RoundTrip,
    Signal,
    StartRun,
    Task,
    TaskDefinition,
    compile_graph,
)
from tilewright.engine.reference.network import MemoryState, Route, Server
from tilewright.engine.reference.packets import (
    ARBITER,
    COMPLETE,
    DECIDE,
    GRANT,
)
from tilewright.engine.reference.queue import BUCKET_SHIFT
from tilewright.engine.reference.tasks import Tasks
from tilewright.engine.spec import CoreService

LIMIT = -1  # in place of a server
MAX_UNCOUNTED = 2**20  # events, until servers count the packets that they noted


class Core(Tasks):
    """One run; the methods follow the sections of the specification.

    The compiled core has the same ones. They raise CoreFault; ``Engine`` has checked arguments.
    """

    def __init__(self, flit_bytes: int, packet_flits: int, arrival_salt: int) -> None:
        super().__init__(flit_bytes, packet_flits, arrival_salt)
        self._free_signals: list[int] = []  # that were removed: the next ones take their numbers
        self._limits_met = 0
        self._next_count = MAX_UNCOUNTED
        self._max_events: int | None = None
        self._last_ps = NO_LIMIT  # of ``next_wake``

    @property
    def events(self) -> int:
        return self._queue.num_taken - self._limits_met

    # -- building --------------------------------------------------------------------------------

    def add_server(
        self,
        flit_ps: int,
        latency_ps: int,
        buffer_flits: int,
        credit_ps: int,
        round_robin: bool,
        whole: bool,
        service: CoreService | None,
        memory: MemoryState | None = None,
    ) -> int:
        self._check_outside()
        server = Server(
            len(self._servers), self._flit_bytes, flit_ps, latency_ps, buffer_flits, credit_ps,
            round_robin, whole, service, memory,
        )  # fmt: skip
        self._servers.append(server)
        return server.index

    def add_banked_memory(self, spec: BankedSpec, capacity_bytes: int) -> int:
        """A server at which routes end."""
        return self._add_memory(ReferenceBankedCore(spec), capacity_bytes)

    def add_simple_memory(self, spec: SimpleSpec, capacity_bytes: int) -> int:
        return self._add_memory(ReferenceSimpleCore(spec), capacity_bytes)

    def _add_memory(self, core: MemoryCore, capacity_bytes: int) -> int:
        memory = MemoryState(core, capacity_bytes)
        return self.add_server(0, 0, UNBOUNDED, 0, False, True, None, memory)

    def add_route(self, servers: list[int], channels: list[int]) -> int:
        self._check_outside()
        route = Route([self._servers[index] for index in servers], channels)
        for hop, server in enumerate(route.servers):
            if not server.eager:
                server.add_queue(server.slot_of(*route.queue_key(hop)))
        self._routes.append(route)
        self._hops.extend(servers)
        return len(self._routes) - 1

    def add_signal(self) -> int:
        self._check_outside()
        if self._free_signals:
            signal = self._free_signals.pop()
            self._signals[signal] = Signal()
            return signal
        self._signals.append(Signal())
        return len(self._signals) - 1

    def remove_signal(self, signal: int) -> None:
        """Let the next signal have this number; refused while tasks wait for it."""
        self._check_outside()
        if self._signals[signal].waiters:
            raise CoreFault(FaultKind.AWAITED_SIGNAL, signal)
        self._free_signals.append(signal)

    def add_gate(self, packets: int) -> int:
        self._check_outside()
        self._gates.append(Gate(len(self._gates), packets))
        return len(self._gates) - 1

    def add_round_trip(
        self,
        out: int,
        back: int,
        gate: int,
        writes: bool,
        is_home: bool,  # noqa: ARG002 -- it simulates nothing apart
        inside: int,
    ) -> int:
        """``gate`` and ``inside`` are -1 for none. ``is_home`` decides only how fast it runs."""
        self._check_outside()
        guard = None if gate < 0 else self._gates[gate]
        crossed = None if inside < 0 else self._routes[inside]
        trip = RoundTrip(self._routes[out], self._routes[back], guard, writes, crossed)
        self._trips.append(trip)
        return len(self._trips) - 1

    def add_issuer(self, spec: IssuerSpec) -> Issuer:
        return Issuer(self.compile, spec, self.is_complete)

    def compile(self, rows: list[Row | Block]) -> Graph:
        return compile_graph(
            rows,
            self._routes,
            self._trips,
            len(self._signals),
            self._packet_bytes,
            self._size_of,
        )

    # -- the loop --------------------------------------------------------------------------------

    def advance(self, until_ps: int) -> list[int]:
        self._check_outside()
        if not self._wakes:
            self._run_guarded(until_ps)
        due = [self.performed_task(~wake) if wake < 0 else wake for wake in self._wakes]
        self._wakes.clear()
        return due

    def next_wake(self) -> int:
        """Run until somebody wakes: ``~owner`` if it performed, else the id of a watched task.

        ``NO_WAKE`` if nothing is left.
        """
        self._check_outside()
        if not self._wakes:
            self._run_guarded(self._last_ps, moves_clock=False)
        if self._wakes:
            return self._wakes.popleft()
        if self._last_ps != NO_LIMIT and self._queue:
            raise CoreFault(FaultKind.CLOCK_LIMIT, self._last_ps)
        return NO_WAKE

    def perform(self, graph: Graph, owner: int) -> int:
        """Submit a graph that is not empty, for a program that waits for its last task.

        Returns what ``next_wake`` does. ``was_submitted`` tells whether an error came later.
        """
        self.was_submitted = False
        last_id = self.submit(graph, owner, ()) + graph.definitions[-1].offset
        self._task(last_id).performed = True
        self._owners.performed[owner] = last_id
        self.was_submitted = True
        return self.next_wake()

    def perform_rows(self, rows: list[Row | Block], owner: int) -> int:
        """The same for a graph that is used once: compile it on the way."""
        self.was_submitted = False
        return self.perform(self.compile(rows), owner)

    def set_limits(self, max_events: int, last_ps: int) -> None:
        """Stop ``next_wake`` with a fault at the next event beyond these."""
        self._max_events = max_events
        self._last_ps = last_ps
        self._next_count = min(self._next_count, max_events)

    def _run_guarded(self, until_ps: int, *, moves_clock: bool = True) -> None:
        self._running = True
        try:
            if until_ps == NO_LIMIT:
                self._run()
            else:
                self._run_until(until_ps, moves_clock=moves_clock)
        finally:
            self._running = False

    def _run_until(self, until_ps: int, *, moves_clock: bool) -> None:
        """Run up to a limit, which is an event of its own, before the grants of its instant.

        The time is the limit's afterwards. Without ``moves_clock`` it is that of the last event, if
        nothing is left.
        """
        limit = (until_ps, GRANT, LIMIT, 0, None, None, 0)
        limits_met = self._limits_met
        self._queue.push(limit)
        self._run()
        self._queue.discard(limit)
        if self._limits_met > limits_met:
            is_over = not self._queue and not moves_clock
            self.now_ps = max(self.now_ps, self._delivered_ps) if is_over else until_ps

    def _run(self) -> None:
        """Events in key order, until wake-ups are due, the limit, or nothing is left.

        Most events are hops of packets on plain routes, whose servers are eager and cut through:
        such a packet never waits for a credit. They are handled here, by the law of ``_serve`` in
        local names, for speed.
        """
        queue, wakes, trace = self._queue, self._wakes, self._trace
        opened, buckets, shift, max_ps = queue.opened, queue.buckets, BUCKET_SHIFT, LAST_PS
        now_ps = self.now_ps
        try:
            while queue.open():
                if queue.num_closed > self._next_count:
                    self._count_servers(now_ps)
                for event_ps, phase, event_id, packet_id, what, hop, tail_in_ps in opened.left:
                    if event_id == LIMIT:
                        self._limits_met += 1
                        return
                    now_ps = event_ps
                    if hop is None:
                        if type(what) is TaskDefinition:
                            self.now_ps = now_ps
                            self._complete_lone(event_id, what)
                        else:
                            self._handle(now_ps, phase, event_id, packet_id, what)
                        if wakes and not queue.has_before(now_ps, GRANT):
                            return  # the arrivals and completions of this instant have run
                        continue
                    server, flit_ps, head_ps, latency_ps, following = what.steps[hop]
                    flits, empty_bytes = what.size
                    start_ps = server.free_ps
                    if start_ps > now_ps:
                        server.note_wait(now_ps, start_ps)
                    else:
                        start_ps = now_ps
                    tail_ps = start_ps + flits * flit_ps
                    late_ps = tail_in_ps + flit_ps
                    if late_ps > tail_ps:  # its flits come slower than the server could send them
                        if late_ps + latency_ps <= max_ps:
                            server.stretch_ps += late_ps - tail_ps
                        tail_ps = late_ps
                    tail_in_ps = tail_ps + latency_ps  # at the next server
                    if tail_in_ps > max_ps:
                        raise CoreFault(FaultKind.TIME_LIMIT, event_id, packet_id, now_ps)
                    server.free_ps = tail_ps
                    server.flits.append(flits)
                    if empty_bytes:
                        server.empty_bytes += empty_bytes
                    if trace is not None:
                        self._note_grant(event_id, packet_id, now_ps, start_ps, tail_ps)
                    if following is None:
                        self._leave(what, packet_id, tail_in_ps)
                        continue
                    at_ps = start_ps + head_ps
                    event = (at_ps, GRANT, following, packet_id, what, hop + 1, tail_in_ps)
                    buckets[at_ps >> shift].append(event)
            now_ps = max(now_ps, self._delivered_ps)  # nothing is left
        finally:
            self.now_ps = now_ps
            queue.forget_taken()

    def _count_servers(self, now_ps: int) -> None:
        """Now and then, so that what they note does not pile up."""
        num_events = self._queue.num_closed
        self._next_count = num_events + MAX_UNCOUNTED
        for server in self._servers:
            server.count(now_ps)
        if self._max_events is not None:
            if num_events - self._limits_met > self._max_events:
                raise CoreFault(FaultKind.EVENT_LIMIT, self._max_events, now_ps)
            self._next_count = min(self._next_count, self._max_events)

    def _leave(self, what: TaskDefinition | Part, packet_id: int, at_ps: int) -> None:
        """At the end of a plain route."""
        if isinstance(what, Part):
            self._deliver(what.task, what.task.definition.route, what.num_bytes, at_ps)
            return
        route = what.route
        route.packets_out += 1
        route.bytes_out += what.amount
        event = (at_ps, COMPLETE, packet_id, 0, what, None, 0)
        self._queue.buckets[at_ps >> BUCKET_SHIFT].append(event)

    def _handle(self, now_ps: int, phase: int, event_id: int, breaker: int, what: Any) -> None:
        if now_ps < self.now_ps:
            raise CoreFault(FaultKind.TIME_REVERSED, event_id, breaker, now_ps)
        self.now_ps = now_ps
        if phase == DECIDE:
            self._decide(self._servers[event_id], what)
        elif phase == GRANT:
            if breaker == ARBITER:
                self._grant(self._servers[event_id])
            else:
                self._take(self._servers[event_id], what)
        elif phase == COMPLETE:
            if isinstance(what, Task):
                self._complete(what)
            elif isinstance(what, Packet):
                self._end_leg(what)
            else:
                self._let_in(what)
        elif isinstance(what, StartRun):
            self._start_next(what)
        elif breaker & 1:
            server, channel, flits = what
            server.credits[channel] += flits
            self._kick(server)
        else:
            self._enqueue(what)
