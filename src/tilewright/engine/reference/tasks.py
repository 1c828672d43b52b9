"""Tasks of the reference core: owners, conditions, signals, exchanges. Sections 4 and 5."""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from operator import attrgetter

from tilewright.engine.core import EARLIER, EXCHANGE, HOLD, LAST_PS, NO_EFFECT, OWNER_SHIFT, TIMER
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference.graph import (
    Gate,
    Graph,
    Leg,
    Packet,
    Part,
    StartRun,
    Task,
    TaskDefinition,
)
from tilewright.engine.reference.network import Route
from tilewright.engine.reference.packets import ARRIVE, COMPLETE, GRANT, Packets
from tilewright.engine.reference.queue import BUCKET_SHIFT
from tilewright.units import MAX_PS

# A tie-breaker makes every key unique: -1 for a start, 2 * server for an arrival there, one more
# for a credit to it. A grant's id is its server and its tie-breaker the packet, -1 for an arbiter.
START = -1
GATE = MAX_PS  # a gate's id is beyond all tasks, its tie-breaker the gate


class Tasks(Packets):
    """The part of the reference core that starts and ends tasks: sections 4 and 5."""

    def submit(self, graph: Graph, owner: int, after: tuple[int, ...]) -> int:
        self._check_outside()
        earlier = self._live_tasks(after)
        for task_id in graph.earlier_ids:
            self._check_issued(task_id)
        sequence = self._owners.begin(owner)
        if sequence + graph.num_ids > 1 << OWNER_SHIFT:
            raise CoreFault(FaultKind.ID_LIMIT, owner)
        first_id = (owner << OWNER_SHIFT) + sequence
        if self.now_ps + graph.max_delay_ps > LAST_PS:
            for definition in graph.definitions:  # raise for the first that could not start
                at_ps = self.now_ps + definition.delay_ps
                self._check_time(at_ps, -1, first_id + definition.offset)
        self._owners.next_sequence[owner] = sequence + graph.num_ids
        if earlier:
            self._submit_linked(enumerate(graph.definitions), first_id, earlier)
        else:
            self._submit_lone(graph.lone, first_id)
            self._submit_linked(graph.linked, first_id, earlier)
        return first_id

    def _submit_lone(self, definitions: list[TaskDefinition], first_id: int) -> None:
        """Tasks that go by their definition alone: a Task is made when somebody asks for it.

        All that happens until the first grant is known now, so it needs no event. The packet is
        counted as in its route; ``route_counters`` takes those off that have not started yet.
        """
        live, buckets, base_ps = self._live, self._queue.buckets, self.now_ps
        for definition in definitions:
            task_id = first_id + definition.offset
            live[task_id] = definition
            at_ps = base_ps + definition.delay_ps
            server = definition.steps[0][0].index
            event = (at_ps, GRANT, server, task_id, definition, 0, at_ps)
            buckets[at_ps >> BUCKET_SHIFT].append(event)
            route = definition.route
            route.packets_in += 1
            route.bytes_in += definition.amount

    def _submit_linked(
        self, rows: Iterable[tuple[int, TaskDefinition]], first_id: int, earlier: list[Task]
    ) -> None:
        tasks: dict[int, Task] = {}
        delayed: list[Task] = []
        for number, definition in rows:
            task_id = first_id + definition.offset
            task = tasks[number] = Task(definition, task_id, tasks)
            self._live[task_id] = task
            if definition.afters or definition.waits or earlier or definition.kind == EARLIER:
                self._count_conditions(task, earlier)
            if task.pending:
                continue
            if definition.delay_ps:
                delayed.append(task)
            else:
                self._start(task)
        if delayed:
            delayed.sort(key=attrgetter("definition.delay_ps"))  # of equal delays, by id
            self._push_start(StartRun(self.now_ps, deque(delayed)))

    def submit_watched(self, graph: Graph, owner: int, after: tuple[int, ...]) -> int:
        """Submit a graph that is not empty and watch its last task, whose id is returned."""
        last_id = self.submit(graph, owner, after) + graph.definitions[-1].offset
        self._task(last_id).watched = True
        return last_id

    def performed_task(self, owner: int) -> int:
        """The last task of what the owner performed last."""
        return self._owners.performed.get(owner, -1)

    def end_owner(self, owner: int) -> None:
        """Nothing more comes from an owner: its ids count as complete once its tasks are."""
        self._check_outside()
        self._owners.end(owner)

    def _count_conditions(self, task: Task, earlier: list[Task]) -> None:
        definition = task.definition
        task.pending = len(definition.afters)
        if definition.kind == EARLIER:
            earlier = [*earlier, *self._live_tasks((definition.amount,))]
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
        return [self._task(task_id) for task_id in ids if task_id in self._live]

    def _check_issued(self, task_id: int) -> None:
        owner, sequence = divmod(task_id, 1 << OWNER_SHIFT)
        if sequence >= self._owners.next_sequence.get(owner, 0) and not self._owners.has_ended(
            owner
        ):
            raise CoreFault(FaultKind.UNKNOWN_TASK, task_id)

    def _push_start(self, run: StartRun) -> None:
        """One event stands for all tasks of a run: the next start."""
        task = run.tasks[0]
        at_ps = run.base_ps + task.definition.delay_ps
        self._check_time(at_ps, -1, task.id)
        self._push(at_ps, ARRIVE, task.id ^ self._salt, START, run)

    def _start_next(self, run: StartRun) -> None:
        task = run.tasks.popleft()
        if run.tasks:
            self._push_start(run)
        self._start(task)

    def _start(self, task: Task) -> None:
        definition = task.definition
        task.packets_left = definition.num_packets
        route = definition.route
        if definition.kind in (TIMER, EARLIER):
            self._push_complete(self.now_ps, task)
        elif definition.kind == EXCHANGE:
            self._start_exchange(task)
        elif definition.kind == HOLD:
            route.packets_in += 1
            tail_in_ps = self.now_ps - route.servers[0].flit_ps  # no wire to wait for
            self._inject(Packet(task.id, task, route, 1, 0, self.now_ps, tail_in_ps))
        else:
            for place in range(definition.num_packets):
                _, num_bytes = definition.part(place, self._packet_bytes)
                self._send(task, task.id + place, route, num_bytes)

    # -- exchanges -------------------------------------------------------------------------------

    def _start_exchange(self, task: Task) -> None:
        gate = task.definition.trip.gate
        if gate is None:
            for _ in range(task.definition.num_packets):
                self._send_next(task)
        else:
            heappush(gate.waiting, (self.now_ps, task.id, task))
            self._call_gate(gate)

    def _send_next(self, task: Task) -> None:
        trip, place = task.definition.trip, task.packets_sent
        task.packets_sent += 1
        _, data_bytes = task.definition.part(place, self._packet_bytes)
        num_bytes = data_bytes if trip.writes else self._flit_bytes
        self._send(task, task.id + place, trip.out, num_bytes, Leg.OUT)

    def _send(
        self, task: Task, packet_id: int, route: Route, num_bytes: int, leg: Leg | None = None
    ) -> None:
        """Let a packet enter a route; ``leg`` is that of an exchange."""
        route.enter(num_bytes)
        now_ps = self.now_ps
        if route.plain and leg is None:
            part = Part(task, num_bytes, self._size_of(num_bytes), route.steps)
            server = part.steps[0][0].index
            self._queue.push((now_ps, GRANT, server, packet_id, part, 0, now_ps))
            return
        flits = -(-num_bytes // self._flit_bytes)
        self._inject(Packet(packet_id, task, route, flits, num_bytes, now_ps, now_ps, leg))

    def _end_leg(self, packet: Packet) -> None:
        """There, the packet's answer sets out, or crosses what is inside and then does. Back,
        another one may, and the last one ends all.
        """
        task, trip = packet.task, packet.task.definition.trip
        definition = task.definition
        if packet.leg is Leg.OUT and trip.inside is not None:
            _, data_bytes = definition.part(packet.id - task.id, self._packet_bytes)
            self._send(task, packet.id, trip.inside, data_bytes, Leg.INSIDE)
            return
        if packet.leg is not Leg.BACK:
            task.packets_served += 1
            is_last = task.packets_served == definition.num_packets
            if is_last and definition.served_effect != NO_EFFECT:
                self._log(definition.served_effect)
            _, data_bytes = definition.part(packet.id - task.id, self._packet_bytes)
            num_bytes = self._flit_bytes if trip.writes else data_bytes
            self._send(task, packet.id, trip.back, num_bytes, Leg.BACK)
            return
        if trip.gate is not None:
            trip.gate.room += 1
            if trip.gate.waiting:
                self._call_gate(trip.gate)
        task.packets_left -= 1
        if not task.packets_left:
            self._complete(task)

    def _call_gate(self, gate: Gate) -> None:
        """After all that starts at this instant, so that the order of starts decides nothing."""
        if not gate.is_due:
            gate.is_due = True
            self._push(self.now_ps, COMPLETE, GATE, gate.index, gate)

    def _let_in(self, gate: Gate) -> None:
        gate.is_due = False
        while gate.room and gate.waiting:
            task = gate.waiting[0][2]
            gate.room -= 1
            self._send_next(task)
            if task.packets_sent == task.definition.num_packets:
                heappop(gate.waiting)

    # -- ends ------------------------------------------------------------------------------------

    def _complete_lone(self, task_id: int, definition: TaskDefinition) -> None:
        task = self._live[task_id]
        if isinstance(task, Task):
            self._complete(task)
            return
        del self._live[task_id]
        if definition.effect != NO_EFFECT:
            self._log(definition.effect)

    def _complete(self, task: Task) -> None:
        del self._live[task.id]
        definition = task.definition
        if definition.effect != NO_EFFECT:
            self._log(definition.effect)
        for signal_index, amount in definition.raises:
            self._raise(signal_index, amount)
        for index in definition.dependents:
            self._release(task.siblings[index])
        for follower in task.followers or ():
            self._release(follower)
        if task.performed:
            self._wakes.append(~(task.id >> OWNER_SHIFT))
        if task.watched:
            self._wakes.append(task.id)

    def _release(self, task: Task) -> None:
        task.pending -= 1
        if task.pending:
            return
        if task.definition.delay_ps:
            self._push_start(StartRun(self.now_ps, deque((task,))))
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
        """Ask for a wake-up; False if the task is already complete."""
        if task_id not in self._live:
            self._check_issued(task_id)
            return False
        self._task(task_id).watched = True
        return True

    def is_complete(self, task_id: int) -> bool:
        if task_id in self._live:
            return False
        self._check_issued(task_id)
        return True
