"""What the reference core says about its state: counters, broken rules, who waits for what."""

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.engine.core import UNBOUNDED
from tilewright.engine.reference_queue import EventQueue
from tilewright.engine.reference_state import Route, Server, Signal, Task, TaskDefinition

Violation = tuple[str, int, int, int]  # rule, server or route, found, expected


_BUSY = 2  # among the counters of a server


class Reports:
    """The half of the reference core that is read; ``ReferenceCore`` has the state and runs it."""

    now_ps: int
    _queue: EventQueue
    _live: dict[int, Task | TaskDefinition]  # a lone transfer's definition stands for it
    _servers: list[Server]
    _routes: list[Route]
    _hops: "array[int]"
    _signals: list[Signal]
    _ahead: tuple[object, dict[Route, tuple[int, int]]]
    _effect_times: list[int]
    _effects: list[int]
    _trace: list[tuple[int, int, int, int, int]] | None

    def _task(self, task_id: int) -> Task:
        """Of a lone transfer it is made when somebody asks for it."""
        found = self._live[task_id]
        if not isinstance(found, Task):
            found = self._live[task_id] = Task(found, task_id, {})
        return found

    def _push(self, at_ps: int, phase: int, event_id: int, breaker: int, what: Any) -> None:
        """An event that is not about a packet on a plain route."""
        self._queue.push((at_ps, phase, event_id, breaker, what, None, 0))

    def is_drained(self) -> bool:
        return not self._queue and not self._live

    def first_violation(self) -> tuple[str, int, int, int] | None:
        return first_violation(self._servers, self._routes, self._hops)

    def tamper(self, server: int, counter: str, amount: int) -> None:
        tamper(self._servers[server], counter, amount)

    def _log(self, effect: int) -> None:
        self._effect_times.append(self.now_ps)
        self._effects.append(effect)

    def take_effects(self) -> list[tuple[int, int]]:
        effects = list(zip(self._effect_times, self._effects, strict=True))
        self._effect_times.clear()
        self._effects.clear()
        return effects

    def take_effect_columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        columns = np.array(self._effect_times, np.int64), np.array(self._effects, np.int64)
        self._effect_times.clear()
        self._effects.clear()
        return columns

    def take_trace(self) -> list[tuple[int, int, int, int, int]]:
        trace = self._trace or []
        self._trace = None if self._trace is None else []
        return trace

    def busy_ps(self) -> list[int]:
        return [server_counters(server, self.now_ps)[_BUSY] for server in self._servers]

    def server_counters(self, server: int) -> tuple[int, int, int, int, int, int, int, int]:
        return server_counters(self._servers[server], self.now_ps)

    def route_counters(self, route: int) -> tuple[int, int, int, int]:
        found = self._routes[route]
        packets, num_bytes = self._packets_ahead().get(found, (0, 0))
        packets_in, bytes_in = found.packets_in - packets, found.bytes_in - num_bytes
        return packets_in, bytes_in, found.packets_out, found.bytes_out

    def _packets_ahead(self) -> dict[Route, tuple[int, int]]:
        """Packets and bytes of lone transfers that will start later; kept while nothing changes."""
        key = self.now_ps, self._queue.num_taken, len(self._live)
        if self._ahead[0] != key:
            ahead: dict[Route, tuple[int, int]] = {}
            for at_ps, _, _, _, what, hop, _ in self._queue:
                if hop == 0 and at_ps > self.now_ps and isinstance(what, TaskDefinition):
                    packets, num_bytes = ahead.get(what.route, (0, 0))
                    ahead[what.route] = packets + 1, num_bytes + what.amount
            self._ahead = key, ahead
        return self._ahead[1]

    def waiting_tasks(
        self,
    ) -> list[tuple[int, int, list[int], list[tuple[int, int, int]], list[int]]]:
        tasks = {task_id: self._task(task_id) for task_id in sorted(self._live)}
        return waiting_tasks(tasks, self._signals)

    def waiting_packets(self) -> list[tuple[int, int, int, int, int, int, int, bool]]:
        return waiting_packets(self._servers)


def server_counters(server: Server, now_ps: int) -> tuple[int, int, int, int, int, int, int, int]:
    """The fields of ServerStatistics, with the queue counted up to now."""
    server.count(now_ps)
    held_ps = server.busy_ps + server.stretch_ps
    return (
        server.packets, server.num_bytes, server.busy_ps, held_ps, server.wait_ps,
        server.queue_ps, server.max_queue, server.free_ps,
    )  # fmt: skip


def first_violation(
    servers: list[Server], routes: list[Route], hops: "array[int]"
) -> Violation | None:
    """The rules of section 6, for a drained core; ``hops`` are all routes' servers in a row."""
    for index, route in enumerate(routes):
        if route.packets_in != route.packets_out:
            return "route packets", index, route.packets_out, route.packets_in
        if route.bytes_in != route.bytes_out:
            return "route bytes", index, route.bytes_out, route.bytes_in
    routed = np.zeros(len(servers), np.int64)
    lengths = np.array([len(route.servers) for route in routes], np.int64)
    bytes_out = np.array([route.bytes_out for route in routes], np.int64)
    np.add.at(routed, np.array(hops), np.repeat(bytes_out, lengths))
    for server, routed_bytes in zip(servers, routed.tolist(), strict=True):
        violation = _server_violation(server, routed_bytes)
        if violation is not None:
            return violation
    return None


def _server_violation(server: Server, routed_bytes: int) -> Violation | None:
    counters = server_counters(server, server.free_ps)
    _, num_bytes, busy_ps, held_ps, wait_ps, queue_ps, _, free_ps = counters
    if num_bytes != routed_bytes:
        return "server bytes", server.index, num_bytes, routed_bytes
    if busy_ps > held_ps:
        return "busy time", server.index, busy_ps, held_ps
    if held_ps > free_ps:
        return "utilisation", server.index, held_ps, free_ps
    if wait_ps < 0:
        return "waiting time", server.index, wait_ps, 0
    if wait_ps != queue_ps:
        return "queue integral", server.index, queue_ps, wait_ps
    for _, credits in sorted(server.credits.items()):
        if server.buffer_flits != UNBOUNDED and credits != server.buffer_flits:
            return "credits", server.index, credits, server.buffer_flits
    return None


def tamper(server: Server, counter: str, amount: int) -> None:
    """Break one counter; ``credits`` stands for the first channel's."""
    if counter == "credits":
        server.credits[min(server.credits)] += amount
    else:
        setattr(server, counter, getattr(server, counter) + amount)


def waiting_tasks(
    live: dict[int, Task], signals: list[Signal]
) -> list[tuple[int, int, list[int], list[tuple[int, int, int]], list[int]]]:
    """The fields of WaitingTask, in the order of ids, in which they are given."""
    earlier: dict[int, list[int]] = {}
    for task_id, task in live.items():
        for follower in task.followers or ():
            earlier.setdefault(follower.id, []).append(task_id)
    rows = []
    for task_id, task in live.items():
        definition = task.definition
        siblings = [task.siblings[index].id for index in definition.afters]
        afters = [sibling for sibling in siblings if sibling in live]
        waits = [
            (signal, signals[signal].value, value)
            for signal, value in definition.waits
            if signals[signal].value < value
        ]
        raises = [signal for signal, _ in definition.raises]
        afters += earlier.get(task_id, [])
        rows.append((task_id, task.packets_left, afters, waits, raises))
    return rows


def waiting_packets(
    servers: list[Server],
) -> list[tuple[int, int, int, int, int, int, int, bool]]:
    """The fields of WaitingPacket, by server, slot and place in the queue."""
    rows = []
    for server in servers:
        for slot in server.slots:
            for _, packet_id, packet in sorted(server.queues[slot].waiting, key=lambda w: w[:2]):
                source, waits_in = packet.queue_key
                wants = packet.route.channels[packet.hop]
                last_hop = packet.hop + 1 == len(packet.route.servers)
                row = (packet_id, packet.task.id, server.index, source, waits_in, wants)
                rows.append((*row, packet.flits, last_hop))
    return rows
