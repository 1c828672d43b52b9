"""What an owner's packets did, packet by packet: holds, accesses, messages, and when they ended."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.analysis.trace.servers import ServerKind, ServerTable, TracedServer
from tilewright.engine.dram.spec import BankedSpec, SimpleSpec

Column = npt.NDArray[np.int64]
Spans = list[tuple[int, int]]

_WORK = {
    ServerKind.CPU: "issue",
    ServerKind.GEMM: "gemm",
    ServerKind.VECTOR: "vector",
    ServerKind.TCM_PORT: "tcm_port",
    ServerKind.CONTROL: "message",
}


class FieldTime(NamedTuple):
    """Time of one step that a field of the machine file sets."""

    field: str  # "": no field is known to
    work_ps: int  # of it; for a unit or inside a memory, waiting included
    least_ps: int  # of it, if it waits for nobody
    queue_ps: int = 0  # before it, in front of a link


class Activities:
    """Holds, exchanges and messages: the rows of one packet each, in the order of packet ids.

    A command's tasks have the ids between its issue and the next one.
    """

    def __init__(self, rows: Column, memory_rows: Column, servers: ServerTable) -> None:
        self.rows = rows[np.argsort(rows[:, 1], kind="stable")]
        self.ids, self.first = np.unique(self.rows[:, 1], return_index=True)
        self.stop = np.append(self.first[1:], len(self.rows))
        self._servers = servers
        self._done_ps: dict[int, int] = dict(memory_rows[:, (1, 3)].tolist())
        self._closed: dict[int, Spans] | None = None
        self._holds: dict[tuple[int, int], int] | None = None  # by server and end
        self._refreshed_ps: dict[int, int] = dict(memory_rows[:, (1, 4)].tolist())
        used, self._places = np.unique(self.rows[:, 0], return_inverse=True)
        self._used = [servers[int(number)] for number in used]
        self.kinds = self._of_server("kind")[self.first]
        self.starts = self.rows[self.first, 2]
        self.ends = self.rows[self.stop - 1, 4] + self._of_server("latency_ps")[self.stop - 1]
        self._by_end = np.argsort(self.ends, kind="stable")
        self._ends_in_order = self.ends[self._by_end]
        self.issues = np.flatnonzero(self.kinds == ServerKind.CPU)
        self.commands = np.searchsorted(self.ids[self.issues], self.ids, side="right") - 1
        self._sort_packets()

    def _of_server(self, field: str) -> Column:
        """Something of the server of each row."""
        return np.array([getattr(server, field) for server in self._used], np.int64)[self._places]

    def _sort_packets(self) -> None:
        """Which packets are accesses, which of these write, and which are messages."""
        self._are_memories = self._of_server("kind") == ServerKind.MEMORY
        self.is_exchange = np.logical_or.reduceat(self._are_memories, self.first)
        self.is_transfer = (self.kinds == ServerKind.LINK) & ~self.is_exchange
        is_message = self.is_transfer | (self.kinds == ServerKind.CONTROL)
        self.message_commands = set(self.commands[is_message].tolist())
        self.is_write = self._find_writes()
        self._channels = {
            writes: _Channel.of(self, self.is_exchange & (self.is_write == writes))
            for writes in (False, True)
        }

    def _find_writes(self) -> npt.NDArray[np.bool_]:
        """A read's request is one flit, a write's answer is. Where both are, its command tells."""
        is_long = self.rows[:, 4] - self.rows[:, 3] > self._of_server("flit_ps")
        writes = self.is_exchange & is_long[self.first]
        reads = self.is_exchange & is_long[self.stop - 1]
        stages = np.array([server.unit == "tcm.write" for server in self._used])
        storing = writes | (stages[self._places[self.first]] & (self.kinds == ServerKind.TCM_PORT))
        stored = np.isin(self.commands, self.commands[storing])
        loaded = np.isin(self.commands, self.commands[reads])
        found: npt.NDArray[np.bool_] = writes | (self.is_exchange & ~reads & stored & ~loaded)
        return found

    def issue_of(self, activity: int) -> int | None:
        """The issue of its command."""
        command = int(self.commands[activity])
        return None if command < 0 else int(self.issues[command])

    def ended_at(self, at_ps: int, before: int) -> int | None:
        """What ended exactly then, of earlier ids; the nearest one."""
        low, high = np.searchsorted(self._ends_in_order, (at_ps, at_ps + 1))
        found = [int(activity) for activity in self._by_end[low:high] if activity < before]
        return max(found, default=None)

    def last_end_in(self, low_ps: int, high_ps: int, before: int) -> int | None:
        """The latest end between two times, both included, of earlier ids."""
        low, high = np.searchsorted(self._ends_in_order, (low_ps, high_ps + 1))
        for activity in self._by_end[low:high][::-1]:
            if activity < before:
                return int(activity)
        return None

    def came_back_at(self, activity: int) -> int | None:
        """The packet of the same channel whose return let this one out, if any."""
        return self._channels[bool(self.is_write[activity])].back_at(int(self.starts[activity]))

    def under_way(self, activity: int) -> int:
        """Packets of its channel that had set out and were not back just before it set out."""
        return self._channels[bool(self.is_write[activity])].under_way(int(self.starts[activity]))

    def _refresh_ps(self, server: int, packet: int, ready_ps: int, start_ps: int) -> int:
        """What refresh held an access up, in the memory and already in front of it."""
        if self._closed is None:
            self._closed = self._find_closed()
        in_front_ps = 0
        spans = self._closed.get(server, [])
        for since_ps, until_ps in spans[max(0, bisect_right(spans, (ready_ps, 0)) - 1) :]:
            if since_ps >= start_ps:
                break
            in_front_ps += max(0, min(until_ps, start_ps) - max(since_ps, ready_ps))
        return in_front_ps + self._refreshed_ps.get(packet, 0)

    def _find_closed(self) -> dict[int, Spans]:
        """By memory: from when to when refreshes closed it, as accesses that met one tell."""
        found: dict[int, dict[int, int]] = {}
        for server, packet, _, start_ps, _ in self.rows[self._are_memories].tolist():
            refresh, held_ps = self._servers[server].refresh, self._refreshed_ps.get(packet, 0)
            if refresh is None or not held_ps:
                continue
            since_ps = refresh.last_due_ps(self._done_ps[packet])
            until_ps = max(since_ps, start_ps) + held_ps
            spans = found.setdefault(server, {})
            spans[since_ps] = max(spans.get(since_ps, 0), until_ps)
        return {server: sorted(spans.items()) for server, spans in found.items()}

    def parts_of(self, activity: int) -> Iterator[tuple[str, int]]:
        """What the time from its start to its end was."""
        kind = ServerKind(int(self.kinds[activity]))
        if kind in _WORK:
            yield _WORK[kind], int(self.ends[activity] - self.starts[activity])
            return
        work = "message"
        if self.is_exchange[activity]:
            work = "memory_write" if self.is_write[activity] else "memory_read"
        for server, held_ps, work_ps in self._hops(activity):
            is_memory = server.kind is ServerKind.MEMORY
            yield "refresh" if is_memory else "link_queueing", held_ps
            yield work, work_ps

    def held_up_by(self, activity: int) -> int | None:
        """Return what kept a unit until this activity had it; None: it was free, or another's."""
        row = self.first[activity]
        server, _, ready_ps, start_ps, _ = self.rows[row].tolist()
        if ServerKind(int(self.kinds[activity])) not in _WORK or start_ps == ready_ps:
            return None
        if self._holds is None:
            rows = self.rows[self.first].tolist()
            self._holds = {(each[0], each[4]): index for index, each in enumerate(rows)}
        return self._holds.get((server, start_ps))

    def fields_of(self, activity: int) -> Iterator[FieldTime]:
        """Yield what sets the time of an activity. Waiting for a refresh is no part of it."""
        if ServerKind(int(self.kinds[activity])) in _WORK:
            number, _, ready_ps, start_ps, _ = self.rows[self.first[activity]].tolist()
            work_ps, wait_ps = int(self.ends[activity]) - ready_ps, start_ps - ready_ps
            yield FieldTime(self._servers[number].rate_field, work_ps, work_ps - wait_ps)
            return
        slowest: TracedServer | None = None  # link since the packet was last taken in whole
        for server, held_ps, work_ps in self._hops(activity):
            left_ps = work_ps
            for field, latency_ps in server.latency_fields:
                part_ps = min(latency_ps, left_ps)
                yield FieldTime(field, part_ps, part_ps)
                left_ps -= part_ps
            if server.kind is ServerKind.MEMORY:
                least_ps = _least_ps(server, is_write=bool(self.is_write[activity]))
                yield FieldTime(server.rate_field, left_ps, min(least_ps, left_ps))
                slowest = None
                continue
            if slowest is None or server.reassembles or server.flit_ps >= slowest.flit_ps:
                slowest = server
            head_ps = min(server.flit_ps, left_ps)
            yield FieldTime(server.rate_field, head_ps, head_ps, held_ps)
            yield FieldTime(slowest.rate_field, left_ps - head_ps, left_ps - head_ps)

    def _hops(self, activity: int) -> Iterator[tuple[TracedServer, int, int]]:
        """Yield the servers of a packet's way, how long each held it up, and the rest."""
        hops = self.rows[self.first[activity] : self.stop[activity]].tolist()
        untils = [*(hop[2] for hop in hops[1:]), int(self.ends[activity])]
        for (number, packet, ready_ps, start_ps, _), until_ps in zip(hops, untils, strict=True):
            server, total_ps = self._servers[number], until_ps - ready_ps
            held_ps = start_ps - ready_ps
            if server.kind is ServerKind.MEMORY:
                held_ps = min(self._refresh_ps(number, packet, ready_ps, start_ps), total_ps)
            yield server, held_ps, total_ps - held_ps


def _least_ps(server: TracedServer, *, is_write: bool) -> int:
    """Return the time of one burst of an open row; a simple memory's latency is told apart."""
    match server.memory:
        case BankedSpec(timing=timing):
            return timing.write_end_ps if is_write else timing.read_end_ps
        case SimpleSpec() | None:
            return 0


@dataclass(frozen=True, slots=True)
class _Channel:
    """The packets of one DMA channel, by when they set out and by when they were back."""

    starts: Column
    ends: Column
    by_end: Column  # activities

    @classmethod
    def of(cls, activities: Activities, mask: npt.NDArray[np.bool_]) -> "_Channel":
        chosen = np.flatnonzero(mask)
        order = np.argsort(activities.ends[chosen], kind="stable")
        by_end = chosen[order]
        return cls(np.sort(activities.starts[chosen]), activities.ends[by_end], by_end)

    def back_at(self, at_ps: int) -> int | None:
        place = int(np.searchsorted(self.ends, at_ps))
        is_there = place < len(self.ends) and self.ends[place] == at_ps
        return int(self.by_end[place]) if is_there else None

    def under_way(self, at_ps: int) -> int:
        return int(np.searchsorted(self.starts, at_ps) - np.searchsorted(self.ends, at_ps))
