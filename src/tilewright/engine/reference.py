"""The living definition of ``docs/engine.md``: a heap of (time, phase, id) events."""

from array import array
from collections.abc import Generator, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from types import BuiltinMethodType
from typing import Any

from tilewright.engine.core import NO_LIMIT, OWNER_SHIFT, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference_report import Reports
from tilewright.engine.reference_state import (
    Graph,
    Packet,
    Route,
    Server,
    Signal,
    Task,
    compile_graph,
)
from tilewright.engine.rows import HOLD, NO_EFFECT, TIMER, Block, Row
from tilewright.engine.spec import CoreService
from tilewright.units import MAX_PS

__all__ = ("ReferenceCore",)

ARRIVE, COMPLETE, GRANT = 0, 1, 2

# A tie-breaker makes every key unique: -1 for a start, 2 * server for an arrival there, one more
# for a credit to it. A grant's id is its server and its tie-breaker the packet, -1 for an arbiter.
START = -1
ARBITER = -1
LIMIT = -1  # in place of a server

Event = tuple[int, int, int, int, Any]  # time, phase, id, tie-breaker, what it is about


class ReferenceCore(Reports):
    """One run; the methods follow the sections of the specification."""

    def __init__(self, flit_bytes: int, packet_flits: int, arrival_salt: int) -> None:
        self.now_ps = 0
        self.events = 0
        self._flit_bytes = flit_bytes
        self._packet_bytes = flit_bytes * packet_flits
        self._salt = arrival_salt
        self._heap: list[Event] = []
        self._servers: list[Server] = []
        self._routes: list[Route] = []
        self._hops = array("q")  # the servers of all routes in a row
        self._signals: list[Signal] = []
        self._next_sequence: dict[int, int] = {}
        self._live: dict[int, Task] = {}
        self._effects: list[tuple[int, int]] = []
        self._wakes: list[int] = []
        self._trace: list[tuple[int, int, int, int, int]] | None = None
        self._running = False

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
        server = Server(len(self._servers), flit_ps, latency_ps, whole)
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
        self._signals.append(Signal())
        return len(self._signals) - 1

    def compile(self, rows: list[Row | Block]) -> Graph:
        return compile_graph(rows, self._routes, len(self._signals), self._packet_bytes)

    def set_trace(self, on: bool) -> None:
        self._trace = [] if on else None

    # -- tasks -----------------------------------------------------------------------------------

    def submit(self, graph: Graph, owner: int, after: tuple[int, ...]) -> int:
        self._check_outside()
        earlier = self._live_tasks(after)
        sequence = self._next_sequence.get(owner, 0)
        if sequence + graph.num_ids > 1 << OWNER_SHIFT:
            raise CoreFault(FaultKind.ID_LIMIT, owner)
        self._next_sequence[owner] = sequence + graph.num_ids
        first_id = (owner << OWNER_SHIFT) + sequence
        tasks: list[Task] = []
        delayed: list[tuple[int, int, Task]] = []
        for definition in graph.definitions:
            task = Task(definition, first_id + definition.offset, tasks)
            tasks.append(task)
            self._live[task.id] = task
            if definition.afters or definition.waits or earlier:
                self._count_conditions(task, earlier)
            if task.pending:
                continue
            if definition.delay_ps:
                delayed.append((definition.delay_ps, task.id, task))
            else:
                self._start(task)
        delayed.sort()
        self._push_next_start(self.now_ps, iter(delayed))
        return first_id

    def submit_watched(self, graph: Graph, owner: int, after: tuple[int, ...]) -> int:
        last_id = self.submit(graph, owner, after) + graph.definitions[-1].offset
        self._live[last_id].watched = True
        return last_id

    def _count_conditions(self, task: Task, earlier: list[Task]) -> None:
        definition = task.definition
        task.pending = len(definition.afters)
        if not definition.afters:
            task.pending += len(earlier)
            for other in earlier:
                other.followers = [task, *(other.followers or ())]
        for signal_index, threshold in definition.waits:
            signal = self._signals[signal_index]
            if signal.value < threshold:
                task.pending += 1
                heappush(signal.waiters, (threshold, task.id, task))

    def _live_tasks(self, ids: tuple[int, ...]) -> list[Task]:
        for task_id in ids:
            self._check_issued(task_id)
        return [self._live[task_id] for task_id in ids if task_id in self._live]

    def _check_issued(self, task_id: int) -> None:
        owner, sequence = divmod(task_id, 1 << OWNER_SHIFT)
        if sequence >= self._next_sequence.get(owner, 0):
            raise CoreFault(FaultKind.UNKNOWN_TASK, task_id)

    def _push_next_start(self, base_ps: int, tasks: Iterator[tuple[int, int, Task]]) -> None:
        """One event stands for all tasks that start after ``base_ps``: the next of them."""
        for delay_ps, task_id, task in tasks:
            at_ps = base_ps + delay_ps
            self._check_time(at_ps, -1, task_id)
            item = (task, base_ps, tasks)
            heappush(self._heap, (at_ps, ARRIVE, task_id ^ self._salt, START, item))
            return

    def _start(self, task: Task) -> None:
        definition = task.definition
        task.packets_left = definition.num_packets
        if definition.kind == TIMER:
            self._push_complete(self.now_ps, task)
            return
        route = definition.route
        route.packets_in += definition.num_packets
        if definition.kind == HOLD:
            packet = Packet(task.id, task, 1, 0, self.now_ps)
            packet.tail_in_ps -= route.servers[0].flit_ps  # no wire to wait for
            self._inject(packet)
            return
        route.bytes_in += definition.amount
        enter = self._set_out if route.plain else self._inject_part
        left, packet_id = definition.amount, task.id
        while left > self._packet_bytes:
            enter(packet_id, task, self._packet_bytes)
            left -= self._packet_bytes
            packet_id += 1
        enter(packet_id, task, left)

    def _set_out(self, packet_id: int, task: Task, num_bytes: int) -> None:
        own: list[Any] = []
        send = self._journey(packet_id, task, num_bytes, own).send
        own.append(send)
        send(None)
        first = task.definition.route.servers[0].index
        heappush(self._heap, (self.now_ps, GRANT, first, packet_id, send))

    def _inject_part(self, packet_id: int, task: Task, num_bytes: int) -> None:
        flits = -(-num_bytes // self._flit_bytes)
        self._inject(Packet(packet_id, task, flits, num_bytes, self.now_ps))

    def _inject(self, packet: Packet) -> None:
        server = packet.route.servers[0]
        if server.eager:
            heappush(self._heap, (self.now_ps, GRANT, server.index, packet.id, packet))
        else:
            self._enqueue(packet)

    def _push_complete(self, at_ps: int, task: Task) -> None:
        heappush(self._heap, (at_ps, COMPLETE, task.id, 0, task))

    def _complete(self, task: Task) -> None:
        del self._live[task.id]
        definition = task.definition
        if definition.effect != NO_EFFECT:
            self._effects.append((self.now_ps, definition.effect))
        for signal_index, amount in definition.raises:
            self._raise(signal_index, amount)
        for index in definition.dependents:
            self._release(task.siblings[index])
        for follower in task.followers or ():
            self._release(follower)
        if task.watched:
            self._wakes.append(task.id)

    def _release(self, task: Task) -> None:
        task.pending -= 1
        if task.pending:
            return
        delay_ps = task.definition.delay_ps
        if delay_ps:
            self._push_next_start(self.now_ps, iter(((delay_ps, task.id, task),)))
        else:
            self._start(task)

    def _raise(self, signal_index: int, amount: int) -> None:
        signal = self._signals[signal_index]
        if signal.value + amount > MAX_PS:
            raise CoreFault(FaultKind.SIGNAL_LIMIT, signal_index, amount)
        signal.value += amount
        waiters = signal.waiters
        while waiters and waiters[0][0] <= signal.value:
            self._release(heappop(waiters)[2])

    def raise_signal(self, signal: int, amount: int) -> None:
        self._check_outside()
        self._raise(signal, amount)

    def signal_value(self, signal: int) -> int:
        return self._signals[signal].value

    def watch(self, task_id: int) -> bool:
        task = self._live.get(task_id)
        if task is None:
            self._check_issued(task_id)
            return False
        task.watched = True
        return True

    # -- the loop --------------------------------------------------------------------------------

    def advance(self, until_ps: int) -> list[int]:
        self._check_outside()
        self._running = True
        try:
            if until_ps == NO_LIMIT:
                self._run()
            else:
                self._run_until(until_ps)
        finally:
            self._running = False
        wakes, self._wakes = self._wakes, []
        return wakes

    def _run_until(self, until_ps: int) -> None:
        """The limit is an event of its own, before the grants of its instant."""
        limit = (until_ps, GRANT, LIMIT, 0, None)
        heappush(self._heap, limit)
        self._run()
        if limit in self._heap:
            self._heap.remove(limit)
            heapify(self._heap)

    def _run(self) -> None:
        """Events in key order, until wake-ups are due, the limit, or nothing is left."""
        heap, wakes, journey = self._heap, self._wakes, BuiltinMethodType
        now_ps, events = self.now_ps, self.events
        try:
            while heap:
                now_ps, phase, event_id, breaker, what = heap[0]
                if type(what) is journey:  # a plain packet, the most frequent of all
                    events += 1
                    following = what(now_ps)
                    if following is None:
                        heappop(heap)
                    else:
                        heapreplace(heap, following)
                    continue
                heappop(heap)
                if event_id == LIMIT:
                    break
                events += 1
                self._handle(now_ps, phase, event_id, breaker, what)
                if wakes and self._reaches_grants():
                    break
        finally:
            self.now_ps, self.events = now_ps, events

    def _journey(
        self, packet_id: int, task: Task, num_bytes: int, own: list[Any]
    ) -> Generator[Event | None, Any, None]:
        """A packet on a route of eager servers that cut through: it never waits for a credit.

        Is sent the time at which it is ready at each server and yields the event of the next one,
        None at the end. ``own`` holds its ``send``, which is what the event is about. This is the
        law of ``_serve`` in local names, for speed.
        """
        flits = -(-num_bytes // self._flit_bytes)
        now_ps = yield None
        tail_in_ps = now_ps
        send = own.pop()
        for server, flit_ps, head_ps, latency_ps, following in task.definition.route.steps:
            start_ps = server.free_ps
            if start_ps > now_ps:
                server.note_wait(now_ps, start_ps)
            else:
                start_ps = now_ps
            hold_ps = flits * flit_ps
            done_ps = start_ps + hold_ps
            tail_ps = tail_in_ps + flit_ps
            if tail_ps < done_ps:
                tail_ps = done_ps
            tail_in_ps = tail_ps + latency_ps
            if tail_in_ps > MAX_PS:
                raise CoreFault(FaultKind.TIME_LIMIT, server.index, packet_id, now_ps)
            if tail_ps > done_ps:
                server.stretch_ps += tail_ps - done_ps
            server.free_ps = tail_ps
            server.busy_ps += hold_ps
            server.num_bytes += num_bytes
            server.packets += 1
            if self._trace is not None:
                self._trace.append((server.index, packet_id, now_ps, start_ps, tail_ps))
            if following is not None:
                now_ps = yield start_ps + head_ps, GRANT, following, packet_id, send
        self._deliver(task, num_bytes, tail_in_ps)
        del send  # or the generator would hold itself
        yield None

    def _reaches_grants(self) -> bool:
        """Whether the arrivals and completions of this instant have all run."""
        return not self._heap or self._heap[0][:2] >= (self.now_ps, GRANT)

    def _handle(self, now_ps: int, phase: int, event_id: int, breaker: int, what: Any) -> None:
        if now_ps < self.now_ps:
            raise CoreFault(FaultKind.TIME_REVERSED, event_id, breaker, now_ps)
        self.now_ps = now_ps
        if phase == GRANT:
            if breaker == ARBITER:
                self._grant(self._servers[event_id])
            else:
                self._take(self._servers[event_id], what)
        elif phase == COMPLETE:
            self._complete(what)
        elif breaker == START:
            task, base_ps, rest = what
            self._push_next_start(base_ps, rest)
            self._start(task)
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
            self._trace.append((server.index, packet.id, packet.ready_ps, start_ps, tail_ps))
        if packet.hop:
            self._return_credit(packet, tail_ps)
        if packet.hop + 1 == len(packet.route.servers):
            self._deliver(packet.task, packet.num_bytes, tail_ps + latency_ps)
            return
        if server.buffer_flits != UNBOUNDED:
            server.credits[packet.route.channels[packet.hop]] -= packet.flits
        packet.hop += 1
        packet.tail_in_ps = tail_ps + latency_ps
        self._push_arrival(packet, start_ps + hold_ps - (packet.flits - 1) * flit_ps + latency_ps)

    def _push_arrival(self, packet: Packet, head_ps: int) -> None:
        server = packet.route.servers[packet.hop]
        packet.ready_ps = packet.tail_in_ps if server.whole else head_ps
        if server.eager:
            key = (GRANT, server.index, packet.id)
        else:
            key = (ARRIVE, packet.id ^ self._salt, 2 * server.index)
        heappush(self._heap, (packet.ready_ps, *key, packet))

    def _return_credit(self, packet: Packet, tail_ps: int) -> None:
        """The packet leaves the buffer behind the server before."""
        server = packet.route.servers[packet.hop - 1]
        if server.buffer_flits != UNBOUNDED:
            at_ps = tail_ps + server.credit_ps
            self._check_time(at_ps, server.index, packet.id)
            item = (server, packet.route.channels[packet.hop - 1], packet.flits)
            key = (ARRIVE, packet.id ^ self._salt, 2 * server.index + 1)
            heappush(self._heap, (at_ps, *key, item))

    def _deliver(self, task: Task, num_bytes: int, at_ps: int) -> None:
        route = task.definition.route
        route.packets_out += 1
        route.bytes_out += num_bytes
        if at_ps > task.end_ps:
            task.end_ps = at_ps
        task.packets_left -= 1
        if not task.packets_left:
            self._push_complete(task.end_ps, task)

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
            heappush(self._heap, (at_ps, GRANT, server.index, ARBITER, None))

    def _grant(self, server: Server) -> None:
        server.grant_due = False
        slot = server.choose()
        if slot is None:
            return
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
        self._kick(server)

    def _service_times(self, server: Server, packet: Packet) -> tuple[int, int]:
        definition = packet.task.definition
        if definition.kind == HOLD:
            return definition.amount, server.latency_ps
        if server.service is None:
            return packet.flits * server.flit_ps, server.latency_ps
        task_id = packet.task.id
        return server.service(
            packet.id, task_id, packet.id - task_id, packet.flits, packet.num_bytes,
            definition.tag, self.now_ps,
        )  # fmt: skip

    # -- checks ----------------------------------------------------------------------------------

    def _check_outside(self) -> None:
        if self._running:
            raise CoreFault(FaultKind.REENTERED)

    def _check_time(self, at_ps: int, server_index: int, item_id: int) -> None:
        if at_ps > MAX_PS:
            raise CoreFault(FaultKind.TIME_LIMIT, server_index, item_id, self.now_ps)
