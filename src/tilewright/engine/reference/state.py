"""The state of the reference core, and what it says of it: counters, broken rules, who waits."""

from array import array
from collections import deque
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.engine.core import LAST_PS, OWNER_SHIFT, UNBOUNDED
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference.graph import Gate, RoundTrip, Signal, Task, TaskDefinition
from tilewright.engine.reference.network import Route, Server, size_of
from tilewright.engine.reference.queue import EventQueue

MAX_KEPT_SIZES = 4096
PAGE_OWNERS = 64  # neighbours, of which the one that has counted farthest is remembered


class Owners:
    """What the core counts for each owner, until the owner ends.

    ``next_sequence`` and ``performed`` are by owner: the owner's next id less its first one, and
    the id of the task that its program waits for.
    """

    __slots__ = ("_ended", "_page_sequence", "next_sequence", "performed")

    def __init__(self) -> None:
        self.next_sequence: dict[int, int] = {}
        self.performed: dict[int, int] = {}
        self._ended = bytearray()  # a bit for each owner
        self._page_sequence = array("q")  # by page: behind all that ended owners have counted

    def begin(self, owner: int) -> int:
        """Return the next sequence of an owner that submits.

        One that had ended counts on behind all its neighbours that had, so that ids are new.
        """
        if owner in self.next_sequence:
            return self.next_sequence[owner]
        if not self.has_ended(owner):
            return 0
        byte, bit = divmod(owner, 8)
        self._ended[byte] ^= 1 << bit
        sequence = self.next_sequence[owner] = self._page_sequence[owner // PAGE_OWNERS]
        return sequence

    def end(self, owner: int) -> None:
        """Note that an owner submits no more; a second time is as good as once."""
        if self.has_ended(owner):
            return
        page, sequence = owner // PAGE_OWNERS, self.next_sequence.pop(owner, 0)
        missing = page + 1 - len(self._page_sequence)
        if missing > 0:
            self._page_sequence.extend([0] * missing)
            self._ended.extend(bytes(missing * PAGE_OWNERS // 8))
        self._page_sequence[page] = max(self._page_sequence[page], sequence)
        self.performed.pop(owner, None)
        byte, bit = divmod(owner, 8)
        self._ended[byte] |= 1 << bit

    def has_ended(self, owner: int) -> bool:
        """Return whether an owner has ended and not submitted since."""
        byte, bit = divmod(owner, 8)
        return byte < len(self._ended) and bool(self._ended[byte] >> bit & 1)


class State:
    """All that one run has; the classes above it move packets, then tasks, then time."""

    def __init__(self, flit_bytes: int, packet_flits: int, arrival_salt: int) -> None:
        self.now_ps = 0
        self.was_submitted = False
        self._flit_bytes = flit_bytes
        self._packet_bytes = flit_bytes * packet_flits
        self._salt = arrival_salt
        self._queue = EventQueue()
        self._delivered_ps = 0  # the last delivery that ended no task
        self._servers: list[Server] = []
        self._routes: list[Route] = []
        self._hops = array("q")  # the servers of all routes in a row
        self._signals: list[Signal] = []
        self._gates: list[Gate] = []
        self._trips: list[RoundTrip] = []
        self._owners = Owners()
        # a lone transfer's definition stands for it
        self._live: dict[int, Task | TaskDefinition] = {}
        self._effect_times: list[int] = []
        self._effects: list[int] = []
        self._wakes: deque[int] = deque()  # ids of watched tasks; of a performed one ~owner
        self._trace: list[tuple[int, int, int, int, int]] | None = None
        self._memory_trace: list[tuple[int, int, int, int, int]] = []
        self._traced_owners = range(0)
        self._running = False
        self._ahead: tuple[object, dict[Route, tuple[int, int]]] = (None, {})
        self._size_of = lru_cache(MAX_KEPT_SIZES)(partial(size_of, flit_bytes=flit_bytes))

    def _check_outside(self) -> None:
        if self._running:
            raise CoreFault(FaultKind.REENTERED)

    def _check_time(self, at_ps: int, server_index: int, item_id: int) -> None:
        if at_ps > LAST_PS:
            raise CoreFault(FaultKind.TIME_LIMIT, server_index, item_id, self.now_ps)

    def _is_traced(self, packet_id: int) -> bool:
        return packet_id >> OWNER_SHIFT in self._traced_owners

    def _task(self, task_id: int) -> Task:
        """Of a lone transfer it is made when somebody asks for it."""
        found = self._live[task_id]
        if not isinstance(found, Task):
            found = self._live[task_id] = Task(found, task_id, {})
        return found

    def _push(self, at_ps: int, phase: int, event_id: int, breaker: int, what: Any) -> None:
        """An event that is not about a packet on a plain route."""
        self._queue.push((at_ps, phase, event_id, breaker, what, None, 0))

    def _log(self, effect: int) -> None:
        self._effect_times.append(self.now_ps)
        self._effects.append(effect)

    # -- results ---------------------------------------------------------------------------------

    def is_drained(self) -> bool:
        return not self._queue and not self._live

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

    def set_trace(self, on: bool, first_owner: int, last_owner: int) -> None:
        self._traced_owners = range(first_owner, last_owner + 1)
        self._trace = [] if on else None
        self._memory_trace = []

    def take_trace(self) -> list[tuple[int, int, int, int, int]]:
        trace = self._trace or []
        self._trace = None if self._trace is None else []
        return trace

    def take_memory_trace(self) -> list[tuple[int, int, int, int, int]]:
        """Memory, packet, when it was decided, when its data were done, held up by refresh."""
        trace, self._memory_trace = self._memory_trace, []
        return trace

    def memory_counters(self, server: int) -> list[tuple[int, ...]]:
        """The fields of ChannelCounters for each pseudo-channel."""
        memory = self._servers[server].memory
        return [] if memory is None else memory.core.counters()

    def memory_openings(self, server: int) -> list[list[int]]:
        """Return how many rows each bank has opened, by pseudo-channel."""
        memory = self._servers[server].memory
        return [] if memory is None else memory.core.openings()

    def busy_ps(self) -> list[int]:
        """Of all servers."""
        for server in self._servers:
            server.count(self.now_ps)
        return [server.busy_ps for server in self._servers]

    def server_counters(self, server: int) -> tuple[int, int, int, int, int, int, int, int]:
        """The fields of ServerStatistics behind the name, with the queue counted up to now."""
        return self._servers[server].counters(self.now_ps)

    def route_counters(self, route: int) -> tuple[int, int, int, int]:
        """The fields of RouteStatistics."""
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
        """The fields of WaitingTask, in the order of ids."""
        live = {task_id: self._task(task_id) for task_id in sorted(self._live)}
        signals = self._signals
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

    def waiting_packets(self) -> list[tuple[int, int, int, int, int, int, int, bool]]:
        """The fields of WaitingPacket, by server, slot and place in the queue."""
        rows = []
        for server in self._servers:
            for slot in server.slots:
                for _, packet_id, packet in sorted(
                    server.queues[slot].waiting, key=lambda w: w[:2]
                ):
                    source, waits_in = packet.queue_key
                    wants = packet.route.channels[packet.hop]
                    last_hop = packet.hop + 1 == len(packet.route.servers)
                    row = (packet_id, packet.task.id, server.index, source, waits_in, wants)
                    rows.append((*row, packet.flits, last_hop))
        return rows

    # -- the rules of section 6, for a drained core -----------------------------------------------

    def first_violation(self) -> tuple[str, int, int, int] | None:
        """The first broken conservation rule: rule, server or route, found, expected."""
        for index, route in enumerate(self._routes):
            if route.packets_in != route.packets_out:
                return "route packets", index, route.packets_out, route.packets_in
            if route.bytes_in != route.bytes_out:
                return "route bytes", index, route.bytes_out, route.bytes_in
        routed = np.zeros(len(self._servers), np.int64)
        lengths = np.array([len(route.servers) for route in self._routes], np.int64)
        bytes_out = np.array([route.bytes_out for route in self._routes], np.int64)
        np.add.at(routed, np.array(self._hops), np.repeat(bytes_out, lengths))
        for server, routed_bytes in zip(self._servers, routed.tolist(), strict=True):
            violation = _server_violation(server, routed_bytes)
            if violation is not None:
                return violation
        return None

    def tamper(self, server: int, counter: str, amount: int) -> None:
        """Break a counter on purpose, so that tests see the rules fire.

        ``credits`` stands for those of the first channel.
        """
        found = self._servers[server]
        if counter == "credits":
            found.credits[min(found.credits)] += amount
        else:
            setattr(found, counter, getattr(found, counter) + amount)


def _server_violation(server: Server, routed_bytes: int) -> tuple[str, int, int, int] | None:
    counters = server.counters(server.free_ps)
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
