"""Packets of the reference core on their way: servers serve them, memories take them in."""

from bisect import bisect_right
from heapq import heappop, heappush

from tilewright.engine.core import EXCHANGE, HOLD, LAST_ACCESS_PS, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference.graph import Packet, Task
from tilewright.engine.reference.network import MemoryState, Queue, Route, Server
from tilewright.engine.reference.state import State

ARRIVE, COMPLETE, GRANT, DECIDE = 0, 1, 2, 3  # phases of an instant
ARBITER = -1  # in place of a packet


class Packets(State):
    """The part of the reference core that moves packets from server to server."""

    def _inject(self, packet: Packet) -> None:
        server = packet.route.servers[0]
        if server.eager:
            self._push(self.now_ps, GRANT, server.index, packet.id, packet)
        else:
            self._enqueue(packet)

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

    def _push_complete(self, at_ps: int, task: Task) -> None:
        self._push(at_ps, COMPLETE, task.id, 0, task)

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
        slot = self._choose(server)
        if server.memory is not None:
            while slot is not None:  # it takes in all that it has room for before all else
                self._grant_first(server, slot)
                slot = self._choose(server)
            self._await_room(server, server.memory)
        elif slot is not None:
            self._grant_first(server, slot)
            self._kick(server)

    def _choose(self, server: Server) -> tuple[int, int] | None:
        """The slot of the queue whose first packet starts now."""
        slots = [slot for slot in server.slots if self._may_start(server, server.queues[slot])]
        if not slots:
            return None
        if server.round_robin:
            return slots[bisect_right(slots, server.last_slot) % len(slots)]
        return min(slots, key=lambda slot: server.queues[slot].waiting[0][:2])

    def _may_start(self, server: Server, queue: Queue) -> bool:
        if not queue.waiting:
            return False
        packet: Packet = queue.waiting[0][2]
        if server.memory is not None:
            return server.memory.core.can_accept(self.now_ps, *self.access_of(packet))
        if server.buffer_flits == UNBOUNDED or packet.hop + 1 == len(packet.route.servers):
            return True
        channel = packet.route.channels[packet.hop]
        return server.credits.setdefault(channel, server.buffer_flits) >= packet.flits

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

    # -- memories --------------------------------------------------------------------------------

    def access_of(self, packet: Packet) -> tuple[bool, int, int]:
        """Whether it writes, its address and bytes."""
        definition = packet.task.definition
        reads = definition.kind == EXCHANGE and not definition.trip.writes
        offset, num_bytes = definition.part(packet.id - packet.task.id, self._packet_bytes)
        return not reads, definition.tag + offset, num_bytes

    def _take_in(self, server: Server, memory: MemoryState, packet: Packet) -> None:
        if self.now_ps > LAST_ACCESS_PS:
            raise CoreFault(FaultKind.LATE_ACCESS, server.index, packet.id, self.now_ps)
        memory.core.accept(self.now_ps, packet.id, *self.access_of(packet))
        memory.packets[packet.id] = packet
        self._decide_at(server, memory, self.now_ps)

    def _decide_at(self, server: Server, memory: MemoryState, at_ps: int) -> None:
        """Let the memory decide at this time, unless it does so earlier anyhow."""
        if memory.decide_ps is None or at_ps < memory.decide_ps:
            memory.decide_ps = at_ps
            memory.num_plans += 1
            self._push(at_ps, DECIDE, server.index, memory.num_plans, memory)

    def _decide(self, server: Server, memory: MemoryState) -> None:
        if memory.decide_ps != self.now_ps:
            return  # it has decided earlier, and planned anew
        memory.decide_ps = None
        for packet_id, done_ps, refresh_ps in memory.core.advance(self.now_ps):
            if self._trace is not None and self._is_traced(packet_id):
                row = (server.index, packet_id, self.now_ps, done_ps, refresh_ps)
                self._memory_trace.append(row)
            self._check_time(done_ps, server.index, packet_id)
            self._arrive(memory.packets.pop(packet_id), done_ps)
        next_ps = memory.core.next_ps()
        if next_ps >= 0:
            self._decide_at(server, memory, next_ps)
        self._kick(server)

    def _await_room(self, server: Server, memory: MemoryState) -> None:
        """For packets that find no room: when there is, as far as that is decided."""
        for slot in server.slots:
            waiting = server.queues[slot].waiting
            if waiting:
                room_ps = memory.core.room_ps(*self.access_of(waiting[0][2]))
                if room_ps >= 0:
                    self._decide_at(server, memory, max(room_ps, self.now_ps))
