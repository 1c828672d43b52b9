"""The living definition of ``docs/engine.md``: events in the order of (time, phase, id)."""

from array import array
from collections import deque
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import Any

from tilewright.engine.core import LAST_PS, NO_LIMIT, NO_WAKE, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.issuer import IssuerSpec, ReferenceIssuer
from tilewright.engine.reference_graph import Graph, compile_graph
from tilewright.engine.reference_memory import Memories
from tilewright.engine.reference_owners import Owners
from tilewright.engine.reference_queue import BUCKET_SHIFT, EventQueue
from tilewright.engine.reference_state import (
    Gate,
    Packet,
    Part,
    RoundTrip,
    Route,
    Server,
    Signal,
    StartRun,
    Task,
    TaskDefinition,
    size_of,
)
from tilewright.engine.reference_tasks import ARRIVE, COMPLETE, DECIDE, GRANT
from tilewright.engine.rows import HOLD, Block, Row
from tilewright.engine.spec import CoreService

ARBITER = -1  # in place of a packet
LIMIT = -1  # in place of a server
MAX_KEPT_SIZES = 4096
MAX_UNCOUNTED = 2**20  # events, until servers count the packets that they noted


class ReferenceCore(Memories):
    """One run; the methods follow the sections of the specification."""

    def __init__(self, flit_bytes: int, packet_flits: int, arrival_salt: int) -> None:
        self.now_ps = 0
        self.was_submitted = False
        self._flit_bytes = flit_bytes
        self._packet_bytes = flit_bytes * packet_flits
        self._salt = arrival_salt
        self._queue = EventQueue()
        self._limits_met = 0
        self._delivered_ps = 0  # the last delivery that ended no task
        self._servers: list[Server] = []
        self._routes: list[Route] = []
        self._hops = array("q")  # the servers of all routes in a row
        self._signals: list[Signal] = []
        self._free_signals: list[int] = []  # that were removed: the next ones take their numbers
        self._gates: list[Gate] = []
        self._trips: list[RoundTrip] = []
        self._owners = Owners()
        self._live: dict[int, Task | TaskDefinition] = {}
        self._effect_times: list[int] = []
        self._effects: list[int] = []
        self._wakes: deque[int] = deque()  # ids of watched tasks; of a performed one ~owner
        self._trace: list[tuple[int, int, int, int, int]] | None = None
        self._memory_trace = []
        self._traced_owners = range(0)
        self._running = False
        self._next_count = MAX_UNCOUNTED
        self._max_events: int | None = None
        self._last_ps = NO_LIMIT  # of ``next_wake``
        self._ahead: tuple[object, dict[Route, tuple[int, int]]] = (None, {})
        self._size_of = lru_cache(MAX_KEPT_SIZES)(partial(size_of, flit_bytes=flit_bytes))

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
    ) -> int:
        self._check_outside()
        server = Server(len(self._servers), self._flit_bytes, flit_ps, latency_ps, whole)
        server.buffer_flits = buffer_flits
        server.credit_ps = credit_ps
        server.round_robin = round_robin
        server.service = service
        server.eager = not round_robin and buffer_flits == UNBOUNDED and service is None
        self._servers.append(server)
        return server.index

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
        self._check_outside()
        guard = None if gate < 0 else self._gates[gate]
        crossed = None if inside < 0 else self._routes[inside]
        trip = RoundTrip(self._routes[out], self._routes[back], guard, writes, crossed)
        self._trips.append(trip)
        return len(self._trips) - 1

    def add_issuer(self, numbers: list[int]) -> ReferenceIssuer:
        return ReferenceIssuer(self.compile, IssuerSpec(*numbers), self.is_complete)

    def compile(self, rows: list[Row | Block]) -> Graph:
        return compile_graph(
            rows,
            self._routes,
            self._trips,
            len(self._signals),
            self._packet_bytes,
            self._size_of,
        )

    def set_trace(self, on: bool, first_owner: int, last_owner: int) -> None:
        self._traced_owners = range(first_owner, last_owner + 1)
        self._trace = [] if on else None
        self._memory_trace = []

    # -- the loop --------------------------------------------------------------------------------

    def advance(self, until_ps: int) -> list[int]:
        self._check_outside()
        if not self._wakes:
            self._run_guarded(until_ps)
        due = [self.performed_task(~wake) if wake < 0 else wake for wake in self._wakes]
        self._wakes.clear()
        return due

    def next_wake(self) -> int:
        self._check_outside()
        if not self._wakes:
            self._run_guarded(self._last_ps, moves_clock=False)
        if self._wakes:
            return self._wakes.popleft()
        if self._last_ps != NO_LIMIT and self._queue:
            raise CoreFault(FaultKind.CLOCK_LIMIT, self._last_ps)
        return NO_WAKE

    def set_limits(self, max_events: int, last_ps: int) -> None:
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
                        if wakes and self._reaches_grants():
                            return
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

    def _inject(self, packet: Packet) -> None:
        server = packet.route.servers[0]
        if server.eager:
            self._push(self.now_ps, GRANT, server.index, packet.id, packet)
        else:
            self._enqueue(packet)

    def _reaches_grants(self) -> bool:
        """Whether the arrivals and completions of this instant have all run."""
        return not self._queue.has_before(self.now_ps, GRANT)

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

    def _take(self, server: Server, packet: Packet) -> None:
        """An eager server takes a packet as soon as it is ready."""
        start_ps = server.free_ps
        if start_ps > packet.ready_ps:
            server.note_wait(packet.ready_ps, start_ps)
        else:
            start_ps = packet.ready_ps
        if packet.num_bytes:
            hold_ps = packet.flits * server.flit_ps
        else:
            hold_ps = packet.task.definition.amount
        self._serve(server, packet, start_ps, hold_ps, server.latency_ps)

    def _serve(
        self, server: Server, packet: Packet, start_ps: int, hold_ps: int, latency_ps: int
    ) -> None:
        """The timing law of section 2: when the packet leaves, and what follows from that."""
        flit_ps = server.flit_ps
        tail_ps = max(start_ps + hold_ps, packet.tail_in_ps + flit_ps)
        self._check_time(tail_ps + latency_ps, server.index, packet.id)
        server.stretch_ps += tail_ps - start_ps - hold_ps
        server.free_ps = tail_ps
        server.busy_ps += hold_ps
        server.num_bytes += packet.num_bytes
        server.packets += 1
        if self._trace is not None:
            self._note_grant(server.index, packet.id, packet.ready_ps, start_ps, tail_ps)
        if packet.hop:
            self._return_credit(packet, tail_ps)
        if packet.hop + 1 == len(packet.route.servers):
            if server.memory is None:
                self._arrive(packet, tail_ps + latency_ps)
            else:
                self._take_in(server, server.memory, packet)
            return
        if server.buffer_flits != UNBOUNDED:
            server.credits[packet.route.channels[packet.hop]] -= packet.flits
        packet.hop += 1
        packet.tail_in_ps = tail_ps + latency_ps
        self._push_arrival(packet, start_ps + hold_ps - (packet.flits - 1) * flit_ps + latency_ps)

    def _note_grant(
        self, server: int, packet_id: int, ready_ps: int, start_ps: int, tail_ps: int
    ) -> None:
        if self._trace is not None and self._is_traced(packet_id):
            self._trace.append((server, packet_id, ready_ps, start_ps, tail_ps))

    def _push_arrival(self, packet: Packet, head_ps: int) -> None:
        server = packet.route.servers[packet.hop]
        packet.ready_ps = packet.tail_in_ps if server.whole else head_ps
        if server.eager:
            key = (GRANT, server.index, packet.id)
        else:
            key = (ARRIVE, packet.id ^ self._salt, 2 * server.index)
        self._push(packet.ready_ps, *key, packet)

    def _return_credit(self, packet: Packet, tail_ps: int) -> None:
        """The packet leaves the buffer behind the server before."""
        server = packet.route.servers[packet.hop - 1]
        if server.buffer_flits != UNBOUNDED:
            at_ps = tail_ps + server.credit_ps
            self._check_time(at_ps, server.index, packet.id)
            item = (server, packet.route.channels[packet.hop - 1], packet.flits)
            key = (ARRIVE, packet.id ^ self._salt, 2 * server.index + 1)
            self._push(at_ps, *key, item)

    def _arrive(self, packet: Packet, at_ps: int) -> None:
        """At the end of its route."""
        if packet.leg is None:
            self._deliver(packet.task, packet.route, packet.num_bytes, at_ps)
            return
        packet.route.leave(packet.num_bytes)
        self._push(at_ps, COMPLETE, packet.id, 0, packet)

    def _deliver(self, task: Task, route: Route, num_bytes: int, at_ps: int) -> None:
        route.leave(num_bytes)
        if at_ps > task.end_ps:
            task.end_ps = at_ps
        task.packets_left -= 1
        if not task.packets_left:
            self._push_complete(task.end_ps, task)
        elif at_ps > self._delivered_ps:
            self._delivered_ps = at_ps

    # -- arbitration -----------------------------------------------------------------------------

    def _enqueue(self, packet: Packet) -> None:
        server = packet.route.servers[packet.hop]
        queue = server.queues[server.slot_of(*packet.queue_key)]
        heappush(queue.waiting, (packet.ready_ps, packet.id, packet))
        server.note_queue(self.now_ps, +1)
        self._kick(server)

    def _kick(self, server: Server) -> None:
        """Make sure that the server looks for a packet as soon as it is free."""
        if not server.grant_due and server.queue:
            server.grant_due = True
            at_ps = max(self.now_ps, server.free_ps)
            self._push(at_ps, GRANT, server.index, ARBITER, None)

    def _grant(self, server: Server) -> None:
        server.grant_due = False
        slot = server.choose(lambda packet: self._has_room(server.memory, packet))
        if server.memory is not None:
            self._admit(server, slot)
        elif slot is not None:
            self._grant_first(server, slot)
            self._kick(server)

    def _admit(self, server: Server, slot: tuple[int, int] | None) -> None:
        """A memory takes in all that it has room for before anything else happens."""
        while slot is not None:
            self._grant_first(server, slot)
            slot = server.choose(lambda packet: self._has_room(server.memory, packet))
        self._await_room(server, server.memory)

    def _grant_first(self, server: Server, slot: tuple[int, int]) -> None:
        """The first packet of a queue starts."""
        queue = server.queues[slot]
        ready_ps, packet_id, packet = heappop(queue.waiting)
        if (ready_ps, packet_id) < queue.last:
            raise CoreFault(FaultKind.ORDER, server.index, packet_id, self.now_ps)
        queue.last = (ready_ps, packet_id)
        server.last_slot = slot
        server.add_wait(self.now_ps - ready_ps)
        server.note_queue(self.now_ps, -1)
        hold_ps, latency_ps = self._service_times(server, packet)
        self._serve(server, packet, self.now_ps, hold_ps, latency_ps)

    def _service_times(self, server: Server, packet: Packet) -> tuple[int, int]:
        definition = packet.task.definition
        if definition.kind == HOLD:
            return definition.amount, server.latency_ps
        if server.memory is not None:
            return 0, 0
        if server.service is None:
            return packet.flits * server.flit_ps, server.latency_ps
        task_id = packet.task.id
        position = packet.id - task_id
        offset, _ = definition.part(position, self._packet_bytes)
        return server.service(
            packet.id, task_id, position, packet.flits, packet.num_bytes,
            definition.tag, offset, self.now_ps,
        )  # fmt: skip

    # -- checks ----------------------------------------------------------------------------------

    def _check_outside(self) -> None:
        if self._running:
            raise CoreFault(FaultKind.REENTERED)

    def _check_time(self, at_ps: int, server_index: int, item_id: int) -> None:
        if at_ps > LAST_PS:
            raise CoreFault(FaultKind.TIME_LIMIT, server_index, item_id, self.now_ps)
