"""Memories at the end of routes of the reference core: accesses wait, are decided and end."""

from abc import abstractmethod

from tilewright.engine.banked_core import MemoryCore, ReferenceBankedCore, ReferenceSimpleCore
from tilewright.engine.banked_spec import BankedSpec, SimpleSpec
from tilewright.engine.core import LAST_ACCESS_PS
from tilewright.engine.fault import CoreFault, FaultKind
from tilewright.engine.reference_state import Packet, Server
from tilewright.engine.reference_tasks import DECIDE, Tasks
from tilewright.engine.rows import EXCHANGE


class MemoryState:
    """A memory behind a server, and the packets that it serves."""

    __slots__ = ("capacity_bytes", "core", "decide_ps", "num_plans", "packets")

    def __init__(self, core: MemoryCore, capacity_bytes: int) -> None:
        self.core = core
        self.capacity_bytes = capacity_bytes
        self.decide_ps: int | None = None  # when it next decides
        self.num_plans = 0  # makes events unique
        self.packets: dict[int, Packet] = {}  # that it serves


class Memories(Tasks):
    """The part of the reference core that knows memories."""

    _memory_trace: list[tuple[int, int, int, int, int]]

    @abstractmethod
    def _kick(self, server: Server) -> None: ...

    @abstractmethod
    def _arrive(self, packet: Packet, at_ps: int) -> None: ...

    def add_banked_memory(
        self, spec: BankedSpec, numbers: list[int], bank_table: list[int], capacity_bytes: int
    ) -> int:
        del numbers, bank_table
        return self._add_memory(MemoryState(ReferenceBankedCore(spec), capacity_bytes))

    def add_simple_memory(self, spec: SimpleSpec, numbers: list[int], capacity_bytes: int) -> int:
        del numbers
        return self._add_memory(MemoryState(ReferenceSimpleCore(spec), capacity_bytes))

    def _add_memory(self, memory: MemoryState) -> int:
        self._check_outside()
        server = Server(len(self._servers), self._flit_bytes, flit_ps=0, latency_ps=0, whole=True)
        server.eager = False
        server.memory = memory
        self._servers.append(server)
        return server.index

    def access_of(self, packet: Packet) -> tuple[bool, int, int]:
        """Whether it writes, its address and bytes."""
        task, definition = packet.task, packet.task.definition
        trip = definition.trip
        reads = definition.kind == EXCHANGE and trip is not None and not trip.writes
        offset, num_bytes = definition.part(packet.id - task.id, self._packet_bytes)
        return not reads, definition.tag + offset, num_bytes

    def _has_room(self, memory: MemoryState, packet: Packet) -> bool:
        return memory.core.can_accept(self.now_ps, *self.access_of(packet))

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

    def take_memory_trace(self) -> list[tuple[int, int, int, int, int]]:
        trace, self._memory_trace = self._memory_trace, []
        return trace

    def memory_counters(self, server: int) -> list[tuple[int, ...]]:
        memory = self._servers[server].memory
        return [] if memory is None else memory.core.counters()

    def memory_openings(self, server: int) -> list[list[int]]:
        memory = self._servers[server].memory
        return [] if memory is None else memory.core.openings()
